"""The figures of a forecast: extra clicks by week, and what becomes of the queries."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saferank.reporting.figures.panels import arranged, drawing, tidy
from saferank.reporting.looks import FAINT, INK, looks_of, policy_name, shortened

Interval = tuple[float, float, float]
"""An estimate, the lower and the upper end of its band."""


def weeks_figure(by_policy: Mapping[str, Sequence[Interval]]) -> Figure:
    """Extra clicks a day in each week, one line and band for each policy."""
    looks = looks_of(list(by_policy))
    with drawing():
        figure = Figure(figsize=(4.4, 3.2), layout="constrained")
        panel = figure.subplots()
        for policy, weeks in by_policy.items():
            look, numbers = looks[policy], range(1, len(weeks) + 1)
            estimate, low, high = zip(*weeks, strict=True)
            panel.fill_between(numbers, low, high, color=look.colour, alpha=0.13, linewidth=0)
            style = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "markersize": 4.5}
            panel.plot(numbers, estimate, label=policy_name(policy), linewidth=1.5, **style)  # type: ignore[arg-type]
        panel.axhline(0, color=INK, linewidth=0.8)
        panel.set_xlabel("week after the switch-on", color=INK)
        panel.set_ylabel("extra clicks a day", color=INK)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(frameon=False, labelcolor=INK, loc="outside upper center", ncols=len(by_policy))
        tidy(panel, "y")
        return arranged(figure)


def decided_figure(by_policy: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """Queries that are changed (filled) and confirmed (hatched) within a number of days; the rest is open."""
    looks, rows = looks_of(list(by_policy)), [(p, d) for p, days in by_policy.items() for d in days]
    with drawing():
        figure = Figure(figsize=(4.4, 1.0 + 0.27 * len(rows)), layout="constrained")
        panel = figure.subplots()
        for row, (policy, days) in enumerate(rows):
            changed, confirmed, still_open = by_policy[policy][days]
            colour = looks[policy].colour
            panel.barh(row, changed, color=colour, height=0.68)
            panel.barh(row, confirmed, left=changed, color="none", edgecolor=colour, hatch="////", height=0.68)
            panel.barh(row, still_open, left=changed + confirmed, color="none", edgecolor=FAINT, height=0.68)
        names = [f"{policy_name(policy)}, {days} days" for policy, days in rows]
        panel.set_yticks(range(len(rows)), names, parse_math=False)
        panel.set_ylim(len(rows) - 0.4, -0.6)
        panel.set_xlabel("number of queries", color=INK)
        tidy(panel, "", rows=True)
        return arranged(figure)


def queries_figure(policy: str, by_query: Mapping[str, Interval]) -> Figure:
    """Extra clicks a day in the last week by query, the most first."""
    look = looks_of([policy])[policy]
    with drawing():
        figure = Figure(figsize=(4.4, 0.9 + 0.22 * len(by_query)), layout="constrained")
        panel = figure.subplots()
        for row, (estimate, low, high) in enumerate(by_query.values()):
            panel.plot((low, high), (row, row), color=look.colour, linewidth=1.4)
            panel.plot(estimate, row, color=look.colour, marker="o", markersize=4.5)
        panel.axvline(0, color=INK, linewidth=0.8)
        panel.set_yticks(range(len(by_query)), [shortened(query, 24) for query in by_query], parse_math=False)
        panel.set_ylim(len(by_query) - 0.4, -0.6)
        panel.set_xlabel("extra clicks a day in the last week", color=INK)
        tidy(panel, "x", rows=True)
        return arranged(figure)
