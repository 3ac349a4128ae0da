"""Figures that show themselves in a notebook and can be saved: results by round, and a comparison by query."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saferank.errors import ArgumentError, writing
from saferank.experiments.comparisons import Comparison, QueryDifference, outcomes_in_words
from saferank.reporting.numbers import CHANCE, student
from saferank.simulation.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saferank.experiments.comparisons import Comparisons


class _Drawn:
    """A figure that shows itself in a notebook and can be written to a file."""

    _argument = "path"

    def __init__(self) -> None:
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError as problem:
            raise ModuleNotFoundError("plot() needs matplotlib: pip install 'saferank[report]'") from problem

    @functools.cached_property
    def figure(self) -> "Figure":
        """The matplotlib figure, to change it."""
        return self._draw()

    def _draw(self) -> "Figure":
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the figure; the ending of the name is the format."""
        from saferank.reporting.figures.panels import FORMATS, write_figure

        if Path(path).suffix.removeprefix(".") not in FORMATS:
            raise ArgumentError(
                self._argument, f"found {str(path)!r}, expected a name that ends in .{', .'.join(FORMATS)}"
            )
        with writing(path):
            write_figure(self.figure, Path(path))
        return Path(path)

    def _repr_png_(self) -> bytes:
        from saferank.reporting.figures.panels import png

        return png(self.figure)


class Plot(_Drawn):
    """Regret above, safety violations below, one column per click model."""

    def __init__(self, curves: Sequence[Result]) -> None:
        super().__init__()
        self._curves = curves

    def _draw(self) -> "Figure":
        from saferank.reporting.figures.curves import curves_figure
        from saferank.reporting.pooling import pooled

        return curves_figure(pooled(self._curves))

    def __repr__(self) -> str:
        models = ", ".join(dict.fromkeys(curve.model for curve in self._curves))
        return f"Plot of regret and violations under {models}; .figure is the matplotlib figure, .save(path) writes it"


MOST_PAIRS = 6
"""A figure of more rows cannot be read."""

_LOOKS = {"win": ("#1b7837", "o"), "tie": ("#75757d", "s"), "loss": ("#b2182b", "^"), None: ("#75757d", "x")}


class Scatter(_Drawn):
    """One row per pair of policies, one column per click model."""

    _argument = "plot"

    def __init__(self, found: "Comparisons") -> None:
        super().__init__()
        if not 1 <= len(found.pairs) <= MOST_PAIRS:
            reason = f"{len(found.pairs)} pairs cannot be drawn in one figure, at most {MOST_PAIRS}; choose fewer"
            raise ArgumentError("policies", reason)
        self._found = found

    def _draw(self) -> "Figure":
        from matplotlib.figure import Figure

        from saferank.reporting.figures.panels import arranged, drawing

        pairs = self._found.pairs
        models = list(dict.fromkeys(each.model for pair in pairs for each in pair.by_query))
        with drawing():
            figure = Figure(figsize=(3.4 * len(models), 3.4 * len(pairs) + 0.3), layout="constrained")
            panels = figure.subplots(len(pairs), len(models), squeeze=False)
            for row, pair in enumerate(pairs):
                for column, model in enumerate(models):
                    _draw_pair(panels[row, column], pair, model, self._found.measure)
            _legend(figure, {each.outcome for pair in pairs for each in pair.by_query} | {"win", "tie", "loss"})
            return arranged(figure)


def _draw_pair(panel: "Axes", pair: Comparison, model: str, measure: str) -> None:
    from saferank.reporting.looks import FAINT, INK, model_name, policy_name

    queries = [each for each in pair.by_query if each.model == model]
    low, high = _scaled(panel, [value for each in queries for value in (each.mean_a, each.mean_b)])
    panel.set_box_aspect(1)
    panel.plot([low, high], [low, high], color=FAINT, zorder=1)
    for outcome, look in _LOOKS.items():
        _points(panel, [each for each in queries if each.outcome == outcome], *look)
    what = measure.replace("_", " ")
    panel.set_xlabel(f"{what} of {policy_name(pair.b)}", color=INK)
    panel.set_ylabel(f"{what} of {policy_name(pair.a)}", color=INK)
    panel.set_title(_title(pair, model, model_name(model)), color=INK, fontsize=9, parse_math=False)


def _title(pair: Comparison, model: str, name: str) -> str:
    found = next((each for each in pair.by_model if each.model == model), None)
    return name if found is None else f"{name}: {outcomes_in_words(found)}"


def _scaled(panel: "Axes", values: Sequence[float]) -> tuple[float, float]:
    """Give both axes the same scale, logarithmic where the values differ by much, and return its ends.

    Below a tenth of the values the logarithmic scale is linear, so that zero has a place.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    positive = sorted(value for value in values if value > 0)
    if low >= 0 and positive and high > 20 * positive[0]:
        bend = positive[len(positive) // 10]
        panel.set_xscale("symlog", linthresh=bend)
        panel.set_yscale("symlog", linthresh=bend)
        low, high = (low / 1.3 if low > bend else -0.1 * bend), high * 1.3
    else:
        margin = 0.05 * (high - low) or 1.0
        low, high = low - margin, high + margin
    panel.set(xlim=(low, high), ylim=(low, high))
    return low, high


def _points(panel: "Axes", queries: Sequence[QueryDifference], colour: str, marker: str) -> None:
    """Bars reach as far as chance does: those that stay off the diagonal are wins and losses."""
    x, y = [each.mean_b for each in queries], [each.mean_a for each in queries]
    errors = [0.0 if each.stderr is None else student(CHANCE, each.runs - 1) * each.stderr for each in queries]
    panel.errorbar(x, y, yerr=errors, fmt=marker, color=colour, ms=4, alpha=0.75, elinewidth=0.7, lw=0, zorder=2)


def _legend(figure: "Figure", there: set[str | None]) -> None:
    from matplotlib.lines import Line2D

    words = {"win": "clearly better", "tie": "no clear difference", "loss": "clearly worse", None: "played once"}
    handles = [
        Line2D([], [], color=colour, marker=marker, lw=0, ms=5, label=words[outcome])
        for outcome, (colour, marker) in _LOOKS.items()
        if outcome in there
    ]
    title = "queries on which the policy of the vertical axis is"
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, title=title)
