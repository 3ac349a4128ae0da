"""The paper's figure: regret above, safety violations below, one column per click model."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank.policies import Look
from saferank.reporting.figures.panels import USUAL, FigureOptions, Line, arranged, draw_panel, drawing, legend_entry
from saferank.reporting.looks import INK, curve_name, looks_of, model_name
from saferank.reporting.pooling import Pooled

_LEGEND_ROW = 0.17
"""Inches of a row of the legend."""


def curves_figure(curves: Sequence[Pooled], options: FigureOptions = USUAL) -> Figure:
    """The figure of some curves; equal policies look the same in every figure."""
    models = list(dict.fromkeys(curve.model for curve in curves))
    policies = list(dict.fromkeys(curve.policy for curve in curves))
    looks, names = looks_of(policies), [curve_name(policy) for policy in policies]
    with drawing():
        beside = options.panels_beside(len(models))
        rows = math.ceil(len(models) / beside)
        width = options.inches_with_names(names) * beside
        figure = Figure(figsize=(width, options.pair_inches * rows), layout="constrained")
        named = options.names_beside(names)
        panels = figure.subplots(2 * rows, beside, squeeze=False)
        for place, model in enumerate(models):
            row, column = divmod(place, beside)
            of_model = [curve for curve in curves if curve.model == model]
            _draw_column(panels[2 * row, column], panels[2 * row + 1, column], of_model, looks, options, named)
        _name_axes(panels, len(models))
        if not named:
            _add_legend(figure, dict(zip(names, map(looks.__getitem__, policies), strict=True)), options)
        figure.align_ylabels()
        return arranged(figure)


def _add_legend(figure: Figure, looks: Mapping[str, Look], options: FigureOptions) -> None:
    """The names below all panels, in as many columns as fit; the figure becomes higher by as much as they need."""
    width, height = figure.get_size_inches()
    columns = options.legend_columns(list(looks), width)
    figure.set_size_inches(width, height + 0.2 + _LEGEND_ROW * math.ceil(len(looks) / columns))
    entries = [legend_entry(name, look) for name, look in looks.items()]
    made = figure.legend(
        handles=entries, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK, handlelength=3.2
    )
    for text in made.get_texts():
        text.set_parse_math(False)


def _name_axes(panels: Any, models: int) -> None:
    """Write what the panels of each row show, and remove those that are left over."""
    for panel in panels[::2, 0]:
        panel.set_ylabel("cumulative expected regret", color=INK)
    for panel in panels[1::2, 0]:
        panel.set_ylabel("safety violations", color=INK)
    beside = panels.shape[1]
    for column in range((models - 1) % beside + 1, beside):
        panels[-2, column].set_visible(False)
        panels[-1, column].set_visible(False)


def _draw_column(
    above: Axes, below: Axes, curves: list[Pooled], looks: dict[str, Look], options: FigureOptions, beside: bool
) -> None:
    shown = [(curve_name(curve.policy), looks[curve.policy], curve) for curve in curves]
    for panel, measure in ((above, "regret"), (below, "violations")):
        parts = [(name, look, c.rounds, getattr(c, measure), c.instances) for name, look, c in shown]
        lines = [Line(name, look, rounds, of.mean, of.bands(queries)) for name, look, rounds, of, queries in parts]
        draw_panel(panel, lines, options, beside)
    above.set_title(model_name(curves[0].model), color=INK, parse_math=False)
    below.set_xlabel("round", color=INK)
