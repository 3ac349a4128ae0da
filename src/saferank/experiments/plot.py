"""Figures that show themselves in a notebook and can be saved: results by round, and a comparison by query."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, writing
from saferank.experiments.comparisons import outcomes_in_words
from saferank.reporting.frames import in_order
from saferank.reporting.numbers import CHANCE, student

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from polars import DataFrame

    from saferank.experiments.comparisons import Comparison
    from saferank.reporting.figures.panels import FigureOptions


class Plot:
    """A figure that shows itself in a notebook and can be written to a file."""

    def __init__(self, draw: "Callable[[], Figure]", about: str, argument: str = "path") -> None:
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError as problem:
            raise ModuleNotFoundError("plot() needs matplotlib: pip install 'saferank[report]'") from problem
        self._draw, self._about, self._argument = draw, about, argument

    @functools.cached_property
    def figure(self) -> "Figure":
        """The matplotlib figure, to change it."""
        return self._draw()

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

    def __repr__(self) -> str:
        return f"Plot of {self._about}; .figure is the matplotlib figure, .save(path) writes it"

    def _repr_png_(self) -> bytes:
        from saferank.reporting.figures.panels import png

        return png(self.figure)


def plot_of(means: "DataFrame", options: "FigureOptions", names: Mapping[str, str]) -> Plot:
    """Regret above, safety violations below, one column per click model."""

    def draw() -> "Figure":
        from saferank.reporting.figures.curves import curves_figure
        from saferank.reporting.looks import labels
        from saferank.reporting.pooling import pooled

        with labels(names, {}):
            return curves_figure(pooled(means), options)

    return Plot(draw, f"regret and violations under {', '.join(in_order(means, 'model'))}")


def scatter_of(found: "Comparison") -> Plot:
    """Every query as a point: a row per pair and a column per click model; of many policies a triangle per model."""
    return Plot(lambda: _scatter(found), f"{found.measure} by query", argument="plot")


_LOOKS = {"win": ("#1b7837", "o"), "tie": ("#75757d", "s"), "loss": ("#b2182b", "^"), None: ("#75757d", "x")}


def _scatter(found: "Comparison") -> "Figure":
    from matplotlib.figure import Figure

    from saferank.reporting.figures.panels import arranged, drawing

    places, inches = _places(found)
    rows, columns = (1 + max(place[axis] for place in places.values()) for axis in (0, 1))
    with drawing():
        figure = Figure(figsize=(inches * columns, inches * rows + 0.3), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for panel in set(panels.ravel()) - {panels[place] for place in places.values()}:
            panel.set_visible(False)
        for pair, place in places.items():
            _draw_pair(panels[place], found, pair, brief=len(places) > _FEW)
        _legend(figure, {"win", "tie", "loss", *found.by_query["outcome"].to_list()}, columns)
        return arranged(figure)


def _places(found: "Comparison") -> tuple[dict[tuple[str, str, str], tuple[int, int]], float]:
    """The row and the column of each pair and click model, and the inches of a panel."""
    names = found.pairs.select("a", "b").unique(maintain_order=True).rows()
    models = in_order(found.pairs, "model")
    if len(names) * len(models) <= _FEW:
        return {(*pair, m): (r, c) for r, pair in enumerate(names) for c, m in enumerate(models)}, 3.4
    policies = list(dict.fromkeys(name for pair in names for name in pair))
    side = len(policies) - 1
    return {
        (a, b, m): (block * side + policies.index(a), policies.index(b) - 1)
        for block, m in enumerate(models)
        for a, b in names
    }, 2.3


_FEW = 6
"""Panels that are drawn large, one row per pair."""


def _draw_pair(panel: "Axes", found: "Comparison", pair: tuple[str, str, str], *, brief: bool) -> None:
    from saferank.reporting.looks import FAINT, INK, model_name, policy_name

    a, b, model = pair
    queries = found.by_query.filter(a=a, b=b, model=model).to_dicts()
    low, high = _scaled(panel, [value for each in queries for value in (each["mean_a"], each["mean_b"])])
    panel.set_box_aspect(1)
    panel.plot([low, high], [low, high], color=FAINT, zorder=1)
    for outcome, look in _LOOKS.items():
        _points(panel, [each for each in queries if each["outcome"] == outcome], *look)
    what = "" if brief else f"{found.measure.replace('_', ' ')} of "
    panel.set_xlabel(f"{what}{policy_name(b)}", color=INK)
    panel.set_ylabel(f"{what}{policy_name(a)}", color=INK)
    row = found.pairs.filter(a=a, b=b, model=model).to_dicts()
    counts = "".join(
        "+ {wins}  = {ties}  - {losses}".format(**each) if brief else outcomes_in_words(each) for each in row
    )
    title = f"{model_name(model)}: {counts}" if counts else model_name(model)
    panel.set_title(title, color=INK, fontsize=7 if brief else 9, parse_math=False)
    if brief:
        panel.tick_params(labelsize=6)


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


def _points(panel: "Axes", queries: Sequence[dict[str, Any]], colour: str, marker: str) -> None:
    """Bars reach as far as chance does: those that stay off the diagonal are wins and losses."""
    x, y = [each["mean_b"] for each in queries], [each["mean_a"] for each in queries]
    errors = [student(CHANCE, each["runs"] - 1) * each["stderr"] if each["stderr"] else 0.0 for each in queries]
    panel.errorbar(x, y, yerr=errors, fmt=marker, color=colour, ms=4, alpha=0.75, elinewidth=0.7, lw=0, zorder=2)


def _legend(figure: "Figure", there: set[str | None], columns: int) -> None:
    from matplotlib.lines import Line2D

    words = {"win": "clearly better", "tie": "no clear difference", "loss": "clearly worse", None: "played once"}
    handles = [
        Line2D([], [], color=colour, marker=marker, lw=0, ms=5, label=words[outcome])
        for outcome, (colour, marker) in _LOOKS.items()
        if outcome in there
    ]
    title = "queries on which the policy of the vertical axis is"
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4 if columns > 1 else 2, frameon=False, title=title
    )
