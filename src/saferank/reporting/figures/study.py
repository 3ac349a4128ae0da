"""The figures of the two studies: regret under either rule, and regret and violations under the wrong click model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter

from saferank.reporting.figures.panels import USUAL, FigureOptions, arranged, drawing, tidy
from saferank.reporting.looks import FAINT, INK, looks_of, model_name, shortened
from saferank.reporting.numbers import Measured
from saferank.reporting.pooling import Pooled

if TYPE_CHECKING:
    from saferank.reporting.study import ModelStudy, StudyPair

_PAPER, _ANYTIME = looks_of([])["original"], looks_of([])["kl-ucb-br"]
_ERRORS = 2.0
"""Standard errors that the bars reach to either side."""


def study_figure(sets: "Mapping[str, Sequence[StudyPair]]") -> Figure:
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


def _draw_set(panel: Axes, pairs: "Sequence[StudyPair]") -> None:
    several = len({pair.policy for pair in pairs}) > 1
    for row, pair in enumerate(pairs):
        means = (pair.anytime.regret.end.mean, pair.paper.regret.end.mean)
        panel.plot(means, (row, row), color=FAINT, linewidth=3, zorder=1, solid_capstyle="round")
        _draw_point(panel, row, pair.paper, filled=False)
        _draw_point(panel, row, pair.anytime, filled=True)
        panel.text(1.02, row, _saving(pair.ratio), transform=panel.get_yaxis_transform(), va="center", color=INK)
    names = [f"{pair.policy} {pair.model}" if several else pair.model for pair in pairs]
    panel.set_yticks(range(len(pairs)), names, parse_math=False)
    panel.set_ylim(len(pairs) - 0.4, -0.6)
    panel.set_xlim(0, 1.08 * max(max(pair.paper.regret.end.mean, pair.anytime.regret.end.mean, 1e-9) for pair in pairs))
    panel.set_xlabel("cumulative expected regret", color=INK)
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    tidy(panel, "x", rows=True)


def _draw_point(panel: Axes, row: int, outcome: Pooled, *, filled: bool) -> None:
    look = _ANYTIME if filled else _PAPER
    end = outcome.regret.end
    panel.errorbar(
        end.mean,
        row,
        xerr=None if end.stderr is None else _ERRORS * end.stderr,
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


def _explain(figure: Figure) -> None:
    paper = Line2D([], [], color=_PAPER.colour, marker="D", linestyle="", markerfacecolor="none", label="paper rule")
    anytime = Line2D([], [], color=_ANYTIME.colour, marker="o", linestyle="", label="anytime rule")
    figure.legend(handles=[paper, anytime], loc="outside lower center", ncols=2, frameon=False, labelcolor=INK)


_TITLES = {"regret": "regret at {rounds:,} rounds", "violations": "violations a run"}
_WIDTH = 0.8
"""Of a click model, as a share of the distance to the next."""


def model_study_figure(
    study: "ModelStudy", options: FigureOptions = USUAL, measures: Sequence[str] = ("regret", "violations")
) -> Figure:
    """A panel for each measure, one above the other."""
    narrow = options.columns == 1 or len(measures) == 1
    with drawing():
        size = (options.panel_inches * (1 if narrow else 2), (2.3 if narrow else 2.5) * len(measures) + 0.9)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(measures), 1, sharex=True, squeeze=False)[:, 0]
        for panel, measure in zip(panels, measures, strict=True):
            _draw(panel, study, measure)
            panel.set_ylabel(_TITLES[measure].format(rounds=study.rounds), color=INK)
        panels[-1].set_xticks(range(len(study.models)), [model_name(m) for m in study.models], parse_math=False)
        handles, names = panels[0].get_legend_handles_labels()
        columns = 3 if narrow else 5
        figure.legend(
            handles, names, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK, columnspacing=1.0,
            handletextpad=0.2,
        )  # fmt: skip
        return arranged(figure)


def _draw(panel: Axes, study: "ModelStudy", measure: str) -> None:
    looks = looks_of(study.policies)
    step = _WIDTH / max(1, len(study.policies))
    for place, policy in enumerate(study.policies):
        lines = [study.lines.get((policy, model)) for model in study.models]
        points = [(at, line) for at, line in enumerate(lines) if line is not None]
        x = [at + (place - (len(study.policies) - 1) / 2) * step for at, _ in points]
        found = [getattr(line, measure).end for _, line in points]
        errors = [each.across or each.stderr or 0.0 for each in found]
        look = looks[policy]
        panel.errorbar(
            x, [each.mean for each in found], yerr=errors, linestyle="", marker=look.marker, color=look.colour,
            markersize=5, elinewidth=1.0, label=study.name(policy), zorder=3,
        )  # fmt: skip
        for at, (_, line), end in zip(x, points, found, strict=True):
            if study.is_home(line):
                panel.plot(at, end.mean, "o", markersize=11, markerfacecolor="none",
                           markeredgecolor=look.colour, markeredgewidth=1.0)  # fmt: skip
    _finish(panel, measure)


def _finish(panel: Axes, measure: str) -> None:
    """Violations may be zero, which a logarithmic axis does not have."""
    panel.set_yscale("log" if measure == "regret" else "symlog", **({} if measure == "regret" else {"linthresh": 1.0}))
    if measure == "violations":
        panel.set_ylim(bottom=-0.3)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    tidy(panel, "y")
