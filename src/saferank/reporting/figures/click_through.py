"""Predicted against observed click-through by position, one line per click model: where a model is wrong."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from saferank.files import replacing
from saferank.fitting.evaluation import Evaluation
from saferank.verbs import Floats

_LOOKS = {
    "pbm": ("#e08214", "-", "o"),
    "cm": ("#c51b2c", "--", "s"),
    "dcm": ("#762a83", "-.", "D"),
    "dbn": ("#2166ac", "-", "^"),
    "ubm": ("#1b8a4a", "--", "v"),
    "ccm": ("#8c510a", ":", "P"),
}
"""Colour, line and marker: any one of them tells models apart, also in grey or for colour-blind eyes."""


_NOISE = 2.0
"""Standard errors of the observed click-through that are shaded."""


def click_through_figure(evaluations: Mapping[str, Evaluation], path: Path) -> None:
    """Draw the evaluations (by model, all of the same pages) and write them to ``path`` (PNG), at once."""
    figure = Figure(figsize=(7.2, 6.4), dpi=150, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_observed(above, below, next(iter(evaluations.values())))
    for name, shift in zip(evaluations, _shifts(len(evaluations)), strict=True):
        _draw_model(above, below, name, evaluations[name], shift)
    _label(above, below)
    handles, names = above.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, columnspacing=1.4)
    with replacing(path) as file:
        figure.savefig(file, format="png")


def _shifts(n: int) -> Floats:
    """Curves stand a little beside each other, so that equal ones can be told apart."""
    return np.linspace(-0.2, 0.2, n) if n > 1 else np.zeros(1)


def _draw_observed(above: Axes, below: Axes, evaluation: Evaluation) -> None:
    there = evaluation.shown > 0
    positions, observed = np.flatnonzero(there) + 1, evaluation.observed[there]
    noise = _NOISE * np.sqrt(observed * (1 - observed) / evaluation.shown[there])
    above.bar(positions, observed, width=0.62, color="#d0d0d0", label="observed", zorder=0)
    below.bar(positions, 2 * noise, bottom=-noise, width=0.62, color="#d0d0d0", zorder=0)


def _draw_model(above: Axes, below: Axes, name: str, evaluation: Evaluation, shift: float) -> None:
    there = evaluation.shown > 0
    predicted, away = evaluation.predicted[there], (evaluation.predicted - evaluation.observed)[there]
    colour, line, marker = _LOOKS[name]
    for panel, values in ((above, predicted), (below, away)):
        positions = np.flatnonzero(there) + 1 + shift
        panel.plot(
            positions, values, linestyle=line, color=colour, linewidth=1.4, marker=marker, ms=4.5, label=name.upper()
        )


def _label(above: Axes, below: Axes) -> None:
    above.set_title("Click-through of held-out pages, predicted and observed")
    above.set_ylabel("click-through")
    below.set_ylabel("predicted - observed")
    below.set_xlabel(f"position (grey below: {_NOISE:g} standard errors of what was observed)")
    below.axhline(0, color="#7f7f7f", linewidth=0.8, zorder=1)
    below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=20))
    for panel in (above, below):
        panel.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
