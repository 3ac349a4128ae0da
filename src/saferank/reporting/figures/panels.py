"""What every figure is made of: options, one panel with its curves and names, and files (PNG, SVG, PDF)."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from saferank.files import replacing
from saferank.policies import Look
from saferank.reporting.looks import FAINT, INK, ZERO, dark_colours
from saferank.verbs import Floats, Ints

COLUMN_INCHES = 3.4
"""The width of one column of a two-column paper; type is set for this width and is not to be scaled."""
PAGE_INCHES = 3.75
"""The width of a panel where no paper is asked for."""
MOST_NAMES = 9
"""More curves than this have their names in a legend below the figure instead of beside their ends."""
LONGEST_NAME = 16
"""Characters of a name for which a panel has room beside it."""
_CHARACTER_INCHES = 0.075

Scale = Literal["log", "linear"]


@dataclass(frozen=True)
class FigureOptions:
    """What a reader may choose; the defaults are those of the page."""

    axes: Scale = "log"
    columns: int | None = None  # of a paper; None: as many panels side by side as there are click models
    first_round: int | None = None  # None: the last three powers of ten on logarithmic axes, all on linear ones

    def panels_beside(self, models: int) -> int:
        """How many click models stand side by side."""
        return models if self.columns is None else min(self.columns, models)

    @property
    def panel_inches(self) -> float:
        """The width of a panel with the names beside it."""
        return PAGE_INCHES if self.columns is None else COLUMN_INCHES

    def names_beside(self, names: Sequence[str]) -> bool:
        """True when names stand beside the ends of the curves; otherwise they are in a legend below the figure.

        The width of a column of a paper is fixed, so that long names would leave no room for the curves.
        """
        fixed = self.columns is not None
        return len(names) <= MOST_NAMES and not (fixed and max(map(len, names)) > LONGEST_NAME)

    def inches_with_names(self, names: Sequence[str]) -> float:
        """The width of a panel with these names, which are beside it or in a legend below."""
        if self.columns is not None or not self.names_beside(names):
            return self.panel_inches
        return self.panel_inches + _CHARACTER_INCHES * max(0, max(map(len, names)) - LONGEST_NAME)

    def legend_columns(self, names: Sequence[str], inches: float) -> int:
        """How many names of a legend fit side by side into a figure of this width."""
        return max(1, int(inches / (0.55 + _CHARACTER_INCHES * max(map(len, names)))))

    @property
    def pair_inches(self) -> float:
        """The height of two panels, one above the other; two click models above each other fit a page."""
        return 4.2 if self.columns == 1 else 5.1

    @property
    def words(self) -> str:
        """The axes in a sentence of a caption."""
        return "Axes are logarithmic" if self.axes == "log" else "Axes are linear"


USUAL = FigureOptions()


FORMATS = ("png", "svg", "pdf")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "svg.hashsalt": "saferank",  # the same figure is the same file
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 220,
}
_NO_DATE: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def drawing() -> Iterator[None]:
    """The style in which figures are drawn and saved."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name in another script: boxes do
        yield


def arranged(figure: Figure) -> Figure:
    """A figure whose parts have found their places, once and for all formats."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending."""
    form = path.suffix.removeprefix(".")
    with replacing(path) as file, drawing():
        figure.savefig(file, format=form, metadata=_NO_DATE[form])


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    content = io.BytesIO()
    with drawing():
        figure.savefig(content, format="png", metadata=_NO_DATE["png"])
    return content.getvalue()


def write_formats(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write a figure in every format; returns the files."""
    paths = [folder / f"{stem}.{form}" for form in FORMATS]
    for path in paths:
        write_figure(figure, path)
    return paths


def inline_svg(figure: Figure, identity: str) -> str:
    """A figure for the middle of a page: no background, the page's colours, ids that no other figure has."""
    text = io.StringIO()
    with drawing():
        figure.savefig(text, format="svg", transparent=True, metadata=_NO_DATE["svg"])
    svg = text.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{identity}-", svg)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true" focusable="false">', svg)
    for colour in dark_colours():
        svg = svg.replace(colour, f"var(--{colour_variable(colour)})")
    return svg.replace("xlink:href", "href")


def colour_variable(colour: str) -> str:
    """The name of a colour in the page's style sheet."""
    return f"figure-{colour.removeprefix('#')}"


_MARKERS_A_CURVE = 6
_DECADES = 3
"""Rounds that are drawn: the last three powers of ten, which hold all that can be seen."""
_NOTHING = 1e-6
"""What stays below is zero, up to the rounding of sums."""
_BAND_LOOKS = (0.22, 0.09)
"""How much a band covers: the first, and one behind it."""
_LANE = 0.085
"""Height of a lane and distance of names, as shares of the panel; lanes are lower where there are many."""
_HIGHEST_STRIP = 0.6
"""What the strip of zeros leaves to the other curves."""


@dataclass(frozen=True, eq=False)
class Line:
    """A curve to draw: means by round with bands, each half as wide as it is drawn, the narrower one darker."""

    name: str
    look: Look
    rounds: Ints
    mean: Floats
    bands: Sequence[Floats] = ()

    @property
    def top(self) -> float:
        """Where the curve and its bands end."""
        return float(self.mean[-1] + max((band[-1] for band in self.bands), default=0.0))

    @property
    def is_zero(self) -> bool:
        """Cumulative counts that end at zero have been there all the time."""
        return bool(self.mean[-1] < _NOTHING)


def draw_panel(panel: Axes, lines: Sequence[Line], options: FigureOptions = USUAL, names_beside: bool = True) -> None:
    """Draw the curves, the axes that suit them and, if they stand beside the ends, the names."""
    zeros, others = [line for line in lines if line.is_zero], [line for line in lines if not line.is_zero]
    lane_height = min(_LANE, (_HIGHEST_STRIP if others else 1.0) / (len(zeros) + 0.5))
    strip = lane_height * (len(zeros) + 0.5) if zeros else 0.0
    first, last = _range_of_rounds(lines, options)
    panel.set_xscale(options.axes)
    panel.set_xlim(first, last)
    if options.axes == "log":
        _draw_small_ticks(panel, _ticks(first, last), [])
        floor = _scale(panel, others, first, strip)
    else:
        floor = _scale_evenly(panel, others, strip)
    ends = {}
    for place, line in enumerate(others):
        _draw(panel, line, floor, _marker_places(line.rounds, place / len(lines), first, options))
        ends[line.name] = float(panel.transScale.transform((1.0, line.mean[-1]))[1])
    low, high = panel.transScale.transform([(1.0, bound) for bound in panel.get_ylim()])[:, 1]
    heights = {name: (end - low) / (high - low) for name, end in ends.items()}
    for lane, line in enumerate(zeros):
        heights[line.name] = strip - lane_height * (lane + 0.75)
        places = _marker_places(line.rounds, (lane + 0.5) / len(zeros), first, options)
        _draw_lane(panel, line, heights[line.name], places)
    _draw_strip(panel, strip)
    if names_beside:
        _write_names(panel, lines, heights)
    _finish(panel)


def _range_of_rounds(lines: Sequence[Line], options: FigureOptions) -> tuple[float, float]:
    last = int(max(line.rounds[-1] for line in lines))
    early = int(min(line.rounds[0] for line in lines))
    if early == last:
        return last / 2, last * 2
    if options.first_round is not None or options.axes == "linear":
        return (options.first_round or 0, last)
    first = max(early, last // 10**_DECADES)
    return (first, last) if sum(bool(r >= first) for r in lines[0].rounds) > 1 else (early, last)


def _scale(panel: Axes, lines: Sequence[Line], first: float, strip: float) -> float:
    """A logarithmic axis above the strip, from the smallest number in sight, which is returned, to the largest."""
    panel.set_yscale("log")
    if not lines:
        panel.set_ylim(1, 10)
        _set_ticks(panel, 1, 0)
        return 1.0
    low = min(_lowest(line, first) for line in lines)
    high = max(line.top for line in lines)
    margin = max((high / low) ** 0.05, 1.15 if high > 10 * low else 2.0)
    floor, top = low / margin, high * margin
    panel.set_ylim(10 ** (np.log10(top) - np.log10(top / floor) / (1 - strip)), top)
    _set_ticks(panel, floor, top)
    return float(floor)


def _scale_evenly(panel: Axes, lines: Sequence[Line], strip: float) -> float:
    """A linear axis from zero, above the strip, to the largest number."""
    top = 1.06 * max((line.top for line in lines), default=1.0)
    panel.set_ylim(-top * strip / (1 - strip), top)
    ticks = MaxNLocator(5).tick_values(0, top)
    panel.yaxis.set_major_locator(FixedLocator([t for t in ticks if 0 <= t <= top and (t > 0 or not strip)]))
    return 0.0


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, ..., 9 times the powers of ten between the bounds."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    return [float(power * step) for power in powers for step in range(1, 10) if low <= power * step <= high]


def _draw_small_ticks(panel: Axes, rounds: Sequence[float], values: Sequence[float]) -> None:
    """Ticks without numbers, all of an axis as one artist: matplotlib's own take longer than all the rest."""
    below = Line2D(rounds, [0.0] * len(rounds), transform=panel.get_xaxis_transform())
    beside = Line2D([0.0] * len(values), values, transform=panel.get_yaxis_transform())
    for ticks, marker in ((below, TICKDOWN), (beside, TICKLEFT)):
        ticks.set(color=INK, linestyle="", marker=marker, markersize=1.8, markeredgewidth=0.6, clip_on=False)
        ticks.set_in_layout(False)
        panel.add_artist(ticks)


def _lowest(line: Line, first: float) -> float:
    """The smallest positive number of a curve in sight, unless it is so small that it would only stretch the axis."""
    seen = line.mean[(line.rounds >= first) & (line.mean > _NOTHING)]
    return max(float(seen.min()), float(line.mean[-1]) / 300)


def _set_ticks(panel: Axes, floor: float, top: float) -> None:
    """Powers of ten between the bounds, with 2 and 5 times them where there are few; the others without numbers."""
    all_ticks = _ticks(floor, top) if top > floor else []
    tens = [tick for tick in all_ticks if f"{tick:e}".startswith("1.")]
    major = tens if len(tens) > 2 else [tick for tick in all_ticks if f"{tick:e}"[0] in "125"]
    panel.yaxis.set_major_locator(FixedLocator(major))
    _draw_small_ticks(panel, [], all_ticks)


def _draw(panel: Axes, line: Line, floor: float, markers: list[int]) -> None:
    mean = np.where(line.mean < floor, np.nan, line.mean)
    panel.plot(line.rounds, mean, **_style(line.look), markevery=markers, zorder=3)
    for band, alpha in zip(line.bands, _BAND_LOOKS, strict=False):
        low = np.maximum(mean - band, floor)
        panel.fill_between(line.rounds, low, mean + band, color=line.look.colour, alpha=alpha, linewidth=0)


def _draw_lane(panel: Axes, line: Line, height: float, places: list[int]) -> None:
    heights = np.full(len(line.rounds), height)
    lane = Line2D(line.rounds, heights, **_style(line.look), markevery=places, zorder=3)
    lane.set_transform(panel.get_xaxis_transform())
    panel.add_artist(lane)


def legend_entry(name: str, look: Look) -> Line2D:
    """What stands for a curve in a legend."""
    return Line2D([], [], **_style(look), label=name)


def _style(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour, "linestyle": look.line, "marker": look.marker, "markersize": 4.2, "linewidth": 1.5,
        "markeredgewidth": 0,
    }  # fmt: skip


def _draw_strip(panel: Axes, strip: float) -> None:
    if strip:
        panel.add_artist(Rectangle((0, 0), 1, strip, transform=panel.transAxes, color=ZERO, linewidth=0, zorder=0.5))
        panel.text(-0.025, strip / 2, "0", transform=panel.transAxes, ha="right", va="center", color=INK)


def _write_names(panel: Axes, lines: Sequence[Line], heights: dict[str, float]) -> None:
    """Names beside the ends of the curves, moved apart where they would overlap, with their markers."""
    apart = spread([heights[line.name] for line in lines], _LANE)
    for line, name_height in zip(lines, apart, strict=True):
        ends = (min(heights[line.name], 1.0), name_height)
        leader = Line2D((1.005, 1.045), ends, color=line.look.colour, linewidth=0.7, clip_on=False)
        marker = Line2D((1.07,), (name_height,), **_style(line.look), clip_on=False)
        for artist in (leader, marker):
            artist.set_transform(panel.transAxes)
            panel.add_artist(artist)
        panel.text(1.1, name_height, line.name, transform=panel.transAxes, va="center", color=INK, parse_math=False)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The nearest heights in the same order that are at least ``gap`` apart and, if they fit, between 0 and 1.

    >>> [round(height, 2) for height in spread([0.5, 0.52, 0.02], 0.1)]
    [0.46, 0.56, 0.02]
    """
    order = np.argsort(heights, kind="stable")
    wanted = np.array(heights, float)[order] - gap * np.arange(len(heights))
    blocks: list[tuple[float, int]] = []
    for value in wanted:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (above, n), (below, m) = blocks.pop(), blocks.pop()
            blocks.append(((above * n + below * m) / (n + m), n + m))
    level = np.repeat([value for value, _ in blocks], [n for _, n in blocks])
    room = max(0.0, 1.0 - gap * (len(heights) - 1))
    placed = np.clip(level, 0.0, room) + gap * np.arange(len(heights))
    result = np.empty(len(heights))
    result[order] = placed
    return [float(height) for height in result]


def _marker_places(rounds: Ints, shift: float, first: float, options: FigureOptions) -> list[int]:
    """A few checkpoints, evenly spread over the axis; shifted, so that equal curves can be told apart."""
    axis = np.log(rounds) if options.axes == "log" else rounds.astype(float)
    start, end = np.log(max(first, 1)) if options.axes == "log" else first, axis[-1]
    wanted = start + (end - start) * (np.arange(_MARKERS_A_CURVE) + shift) / _MARKERS_A_CURVE
    return np.unique(np.searchsorted(axis, wanted).clip(max=len(rounds) - 1)).tolist()  # type: ignore[no-any-return]


def _tick(value: float, _: object = None) -> str:
    return EngFormatter(sep="")(value) if value >= 1 else f"{value:g}"


def _finish(panel: Axes) -> None:
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(_tick)
        axis.set_minor_locator(NullLocator())
    tidy(panel, "both")


def tidy(panel: Axes, grid: Literal["both", "x", "y", ""], *, rows: bool = False) -> None:
    """The look of all panels: a faint grid, two axes; where the vertical one names ``rows``, that has no line."""
    if grid:
        panel.grid(axis=grid, color=FAINT, linewidth=0.5)
    panel.set_axisbelow(True)
    panel.tick_params(color=INK, labelcolor=INK, width=0.6)
    if rows:
        panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", *(["left"] if rows else [])]].set_visible(False)
    panel.spines[["bottom", "left"]].set(color=INK, linewidth=0.7)
