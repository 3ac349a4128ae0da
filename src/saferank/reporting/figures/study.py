"""The study's figure: for every click model two points, the regret under either rule, and what one saves."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from saferank.reporting.figures.files import arranged, drawing
from saferank.reporting.looks import FAINT, INK, looks_of, shortened
from saferank.reporting.numbers import Measured
from saferank.reporting.study import StudyOutcome, StudyPair

_PAPER, _ANYTIME = looks_of([])["original"], looks_of([])["kl-ucb-br"]
_ERRORS = 2.0
"""Standard errors that the bars reach to either side."""


def study_figure(sets: Mapping[str, Sequence[StudyPair]]) -> Figure:
    """One panel for every set of instances."""
    with drawing():
        rows = max(len(pairs) for pairs in sets.values())
        figure = Figure(figsize=(4.4 * len(sets), 1.3 + 0.34 * rows), layout="constrained")
        panels = figure.subplots(1, len(sets), squeeze=False)[0]
        for panel, (name, pairs) in zip(panels, sets.items(), strict=True):
            _draw_set(panel, pairs)
            panel.set_title(shortened(name, 34), color=INK, parse_math=False)
        _explain(figure)
        return arranged(figure)


def _draw_set(panel: Axes, pairs: Sequence[StudyPair]) -> None:
    several = len({pair.policy for pair in pairs}) > 1
    for row, pair in enumerate(pairs):
        means = (pair.anytime.regret.mean, pair.paper.regret.mean)
        panel.plot(means, (row, row), color=FAINT, linewidth=3, zorder=1, solid_capstyle="round")
        _draw_point(panel, row, pair.paper, filled=False)
        _draw_point(panel, row, pair.anytime, filled=True)
        panel.text(1.02, row, _saving(pair.ratio), transform=panel.get_yaxis_transform(), va="center", color=INK)
    names = [f"{pair.policy} {pair.model}" if several else pair.model for pair in pairs]
    panel.set_yticks(range(len(pairs)), names, parse_math=False)
    panel.set_ylim(len(pairs) - 0.4, -0.6)
    panel.set_xlim(0, 1.08 * max(max(pair.paper.regret.mean, pair.anytime.regret.mean, 1e-9) for pair in pairs))
    _finish(panel)


def _draw_point(panel: Axes, row: int, outcome: StudyOutcome, *, filled: bool) -> None:
    look = _ANYTIME if filled else _PAPER
    width = None if outcome.regret.stderr is None else _ERRORS * outcome.regret.stderr
    panel.errorbar(
        outcome.regret.mean,
        row,
        xerr=width,
        color=look.colour,
        marker="o" if filled else "D",
        markersize=6.5 if filled else 5.5,
        markerfacecolor=look.colour if filled else "none",
        markeredgewidth=1.4,
        elinewidth=1.2,
        zorder=3,
    )


def _saving(share: Measured | None) -> str:
    if share is None:
        return "-"
    error = "" if share.stderr is None else f" ± {100 * share.stderr:.0f}"
    return f"{100 * (share.mean - 1):+.0f}{error} %".replace("-", "\N{MINUS SIGN}")


def _finish(panel: Axes) -> None:
    panel.set_xlabel("cumulative expected regret", color=INK)
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.grid(axis="x", color=FAINT, linewidth=0.5)
    panel.set_axisbelow(True)
    panel.tick_params(color=INK, labelcolor=INK, width=0.6)
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set(color=INK, linewidth=0.7)


def _explain(figure: Figure) -> None:
    paper = Line2D([], [], color=_PAPER.colour, marker="D", linestyle="", markerfacecolor="none", label="paper rule")
    anytime = Line2D([], [], color=_ANYTIME.colour, marker="o", linestyle="", label="anytime rule")
    figure.legend(handles=[paper, anytime], loc="outside lower center", ncols=2, frameon=False, labelcolor=INK)
