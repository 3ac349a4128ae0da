"""The paper's figure: regret above, safety violations below, one column per click model."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from saferank.report.pooling import Pooled, pooled
from saferank.simulation.results import Result
from saferank.verbs import Floats, Ints
from saferank.whole_files import replacing


class Look(NamedTuple):
    """Colour, line and marker: any one of them tells curves apart, also in grey or for colour-blind eyes."""

    colour: str
    line: str | tuple[int, tuple[int, ...]]
    marker: str


_LOOKS = {
    "kl-ucb-br": Look("#e08214", "-", "o"),
    "bubble-rank": Look("#c51b2c", "--", "s"),
    "top-rank": Look("#2166ac", "-.", "^"),
    "uni-rank": Look("#1b8a4a", (0, (3, 1, 1, 1, 1, 1)), "D"),
    "original": Look("#7f7f7f", ":", "x"),
}
_OTHERS = (Look("#762a83", "-", "v"), Look("#000000", "--", "P"), Look("#8c510a", "-.", "*"), Look("#d01c8b", ":", "h"))
_MARKERS_A_CURVE = 8


def regret_figure(results: Sequence[Result], path: Path) -> None:
    """Draw the results and write them to ``path`` (PNG), at once."""
    curves = pooled(results)
    models = list(dict.fromkeys(curve.model for curve in curves))
    looks = _looks(list(dict.fromkeys(curve.policy for curve in curves)))
    figure = Figure(figsize=(1.2 + 3.1 * len(models), 6.2), dpi=150, layout="constrained")
    panels = figure.subplots(2, len(models), sharex="col", squeeze=False)
    for column, model in enumerate(models):
        _draw_column(panels[0, column], panels[1, column], [curve for curve in curves if curve.model == model], looks)
    panels[0, 0].set_ylabel("cumulative regret")
    panels[1, 0].set_ylabel("safety violations")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 1 + 2 * len(models)), frameon=False)
    with replacing(path) as file:
        figure.savefig(file, format="png")


def _looks(policies: list[str]) -> dict[str, Look]:
    """The paper's colours for its policies; others take theirs in the order in which they come."""
    others = [policy for policy in policies if policy not in _LOOKS]
    return _LOOKS | {policy: _OTHERS[place % len(_OTHERS)] for place, policy in enumerate(others)}


def _draw_column(above: Axes, below: Axes, curves: list[Pooled], looks: dict[str, Look]) -> None:
    for number, curve in enumerate(curves):
        look, markers = looks[curve.policy], _marker_places(curve.rounds, number / len(curves))
        _draw(above, curve, look, markers, curve.regret, curve.regret_stderr)
        _draw(below, curve, look, markers, curve.violations, curve.violations_stderr)
    above.set_title(curves[0].model.upper())
    below.set_xlabel("round")
    for panel in (above, below):
        panel.set_xscale("log")
        panel.yaxis.set_major_formatter(EngFormatter(sep=""))
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]) if panel is above else None)
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)


def _draw(panel: Axes, curve: Pooled, look: Look, markers: list[int], mean: Floats, stderr: Floats | None) -> None:
    panel.plot(
        curve.rounds,
        mean,
        label=curve.policy,
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        markevery=markers,
        markersize=4.5,
        linewidth=1.6,
    )
    if stderr is not None:
        panel.fill_between(curve.rounds, mean - stderr, mean + stderr, color=look.colour, alpha=0.2, linewidth=0)


def _marker_places(rounds: Ints, shift: float) -> list[int]:
    """A few checkpoints, evenly spread over the logarithmic axis; shifted, so that equal curves can be told apart."""
    wanted = np.log(rounds[-1]) * (np.arange(_MARKERS_A_CURVE) + shift) / _MARKERS_A_CURVE
    return np.unique(np.searchsorted(np.log(rounds), wanted).clip(max=len(rounds) - 1)).tolist()  # type: ignore[no-any-return]
