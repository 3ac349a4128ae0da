"""The figure of the study of wrong click models: regret and violations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from saferank.reporting.figures.panels import USUAL, FigureOptions, arranged, drawing, tidy
from saferank.reporting.looks import INK, looks_of, model_name

if TYPE_CHECKING:
    from saferank.reporting.study import ModelStudy

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
