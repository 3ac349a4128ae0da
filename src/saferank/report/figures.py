"""The paper's figure: regret above, safety violations below, one column per click model."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank.report.figure_files import arranged, drawing, write_figure
from saferank.report.looks import INK, Look, looks_of, model_name, policy_name
from saferank.report.panels import Line, draw_panel
from saferank.report.pooling import Pooled, pooled
from saferank.simulation.results import Result


def regret_figure(results: Sequence[Result], path: Path) -> None:
    """Draw the results and write them to ``path`` (PNG), at once."""
    write_figure(curves_figure(pooled(results)), path)


def curves_figure(curves: Sequence[Pooled]) -> Figure:
    """The figure of some curves; equal policies look the same in every figure."""
    models = list(dict.fromkeys(curve.model for curve in curves))
    looks = looks_of(list(dict.fromkeys(curve.policy for curve in curves)))
    with drawing():
        figure = Figure(figsize=(3.75 * len(models), 5.1), layout="constrained")
        panels = figure.subplots(2, len(models), squeeze=False)
        for column, model in enumerate(models):
            of_model = [curve for curve in curves if curve.model == model]
            _draw_column(panels[0, column], panels[1, column], of_model, looks)
        panels[0, 0].set_ylabel("cumulative expected regret", color=INK)
        panels[1, 0].set_ylabel("safety violations", color=INK)
        figure.align_ylabels()
        return arranged(figure)


def _draw_column(above: Axes, below: Axes, curves: list[Pooled], looks: dict[str, Look]) -> None:
    shown = [(policy_name(curve.policy), looks[curve.policy], curve) for curve in curves]
    draw_panel(above, [Line(name, look, c.rounds, c.regret, c.regret_stderr) for name, look, c in shown])
    draw_panel(below, [Line(name, look, c.rounds, c.violations, c.violations_stderr) for name, look, c in shown])
    above.set_title(model_name(curves[0].model), color=INK, parse_math=False)
    below.set_xlabel("round", color=INK)
