"""Queries as dots: the regret of each policy on each query as a share of OriginalRank's, one lane per policy."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from saferank.policies import Look
from saferank.reporting.figures.panels import USUAL, FigureOptions, arranged, drawing, tidy
from saferank.reporting.looks import INK, ORIGINAL, ZERO, looks_of, model_name, policy_name

if TYPE_CHECKING:
    from saferank.reporting.spread import Spread

_LANE = 0.36
"""Half of the height within which the dots of a policy climb."""
_LOWEST, _HIGHEST = 1e-3, 1e3
"""Shares beyond are drawn at the edge."""


def by_query_figure(found: "Mapping[str, Sequence[Spread]]", options: FigureOptions = USUAL) -> Figure:
    """One panel for every click model."""
    models = list(found)
    looks = looks_of(list(dict.fromkeys(spread.policy for spreads in found.values() for spread in spreads)))
    rows = max(len(spreads) for spreads in found.values())
    with drawing():
        beside = options.panels_beside(len(models))
        down = math.ceil(len(models) / beside)
        size = (options.panel_inches * beside, (0.95 + 0.42 * rows) * down)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(down, beside, squeeze=False).ravel()
        for panel, model in zip(panels, models, strict=False):
            _draw_model(panel, found[model], looks)
            panel.set_title(model_name(model), color=INK, parse_math=False)
        for panel in panels[len(models) :]:
            panel.set_visible(False)
        return arranged(figure)


def _draw_model(panel: Axes, spreads: "Sequence[Spread]", looks: Mapping[str, Look]) -> None:
    low, high = _range(spreads)
    edge = high * (high / low) ** 0.06
    panel.set_xscale("log")
    panel.set_xlim(low, edge * (edge / low) ** 0.03)
    panel.axvspan(1, panel.get_xlim()[1], color=ZERO, linewidth=0, zorder=0)
    panel.axvline(1, color=INK, linewidth=0.8, zorder=1)
    for lane, spread in enumerate(spreads):
        _draw_lane(panel, lane, spread, looks[spread.policy], (low, high, edge))
        panel.text(1.02, lane, spread.counts, transform=panel.get_yaxis_transform(), va="center", color=INK)
    panel.text(1.02, -0.75, "better / equal / worse", transform=panel.get_yaxis_transform(), va="center", color=INK,
               fontsize=7)  # fmt: skip
    panel.set_yticks(range(len(spreads)), [spread.name for spread in spreads], parse_math=False)
    panel.set_ylim(len(spreads) - 0.45, -0.55)
    _finish(panel, low, high)


def _range(spreads: "Sequence[Spread]") -> tuple[float, float]:
    """Whole powers of ten around all shares that can be drawn, 1 among them."""
    finite = [each.share for spread in spreads for each in spread.shares if math.isfinite(each.share)]
    drawn = np.clip([*finite, 0.5, 2.0], _LOWEST, _HIGHEST)
    low, high = float(drawn.min()), float(drawn.max())
    return low / 1.3, high * 1.3


def _draw_lane(
    panel: Axes, lane: int, spread: "Spread", look: Look, bounds: tuple[float, float, float]
) -> None:  # fmt: skip
    """Dots climb with their share, so that none hides another; at the edge a triangle stands for a share beyond."""
    low, high, edge = bounds
    shares = np.array([each.share for each in spread.shares])
    heights = lane + np.linspace(_LANE, -_LANE, len(shares)) if len(shares) > 1 else np.array([float(lane)])
    inside = shares <= high
    panel.plot(np.maximum(shares[inside], low), heights[inside], linestyle="", marker="o", markersize=3.2,
               color=look.colour, markeredgewidth=0, alpha=0.85, zorder=3)  # fmt: skip
    if not inside.all():  # an empty line would still take part in the layout
        panel.plot(np.full((~inside).sum(), edge), heights[~inside], linestyle="", marker=">", markersize=4.2,
                   color=look.colour, markeredgewidth=0, zorder=3, clip_on=False)  # fmt: skip


def _finish(panel: Axes, low: float, high: float) -> None:
    powers = 10.0 ** np.arange(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    ticks = sorted({float(p) for p in powers} | ({0.5, 2.0} if len(powers) < 3 else set()))
    panel.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.set_xlabel(f"regret as a share of {policy_name(ORIGINAL)}'s", color=INK, parse_math=False)
    tidy(panel, "x", rows=True)
