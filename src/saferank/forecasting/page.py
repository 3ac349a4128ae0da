"""The page of a forecast: one sentence first, then pictures, tables, and what the numbers mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.files import write_atomically
from saferank.forecasting.playing import FATES
from saferank.forecasting.worlds import DAYS, DEADLINES
from saferank.reporting.figures.forecast import decided_figure, queries_figure, weeks_figure
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import plainly
from saferank.reporting.page import render
from saferank.reporting.sections import Section, Studio
from saferank.table import TextTable

if TYPE_CHECKING:
    from saferank.forecasting.outcome import Band, Forecast

MOST_QUERIES = 25
"""Maximum number of queries with a row of their own: those with the largest effect, in either direction."""


def write_page(found: "Forecast", out: Path) -> None:
    """Write the page and its figures into ``out``."""
    text = render(
        "forecast.html",
        title=f"Safe re-ranking on {found.log}: a forecast",
        subtitle=_subtitle(found),
        forecast=found,
        summary=_summary(found),
        figures=_figures(found, Studio(out)),
        policies=[_policies(found), _decided(found)],
        queries=_queries(found),
        models=_models(found),
        facts=_facts(found),
        days=DAYS,
    )
    write_atomically(out / "forecast.html", text)


def _subtitle(found: "Forecast") -> list[str]:
    return [
        f"log: {found.log}",
        f"{len(found.queries):,} queries",
        f"{found.pages_a_day:,.0f} pages a day, {found.covered:.0%} of them on these queries",
        f"click model: {model_name(found.model)}",
        f"{DAYS} days",
    ]


def _summary(found: "Forecast") -> dict[str, str]:
    """The four answers for the first policy."""
    first, base = found.policies[0], found.production_clicks_a_day
    last, decided = first.weeks[-1], first.decided[30]
    right = len(found.right)
    return {
        "headline": f"{policy_name(first.policy)} would bring {last.estimate:+,.0f} clicks a day after {DAYS} days: "
        f"{100 * last.estimate / base:+.1f} % on these queries (90 % band {100 * last.low / base:+.1f} to "
        f"{100 * last.high / base:+.1f} %).",
        "decided": f"{decided['changed'].mean + decided['confirmed'].mean:.1f} of {len(found.queries)} queries decide "
        f"within 30 days: in {decided['changed'].mean:.1f} of them clicks change the ranking.",
        "worst": f"The worst single page has {first.worst_page:.0%} of production's expected clicks (query "
        f"{first.worst_query}).",
        "cost": "No query is right already, so exploration cannot be wasted on one."
        if first.right_cost is None
        else f"On the {right} {'query' if right == 1 else 'queries'} already right, the policy changes clicks by "
        f"{_percent(first.right_cost)} over {DAYS} days.",
    }


def _policies(found: "Forecast") -> TextTable:
    base = found.production_clicks_a_day
    rows = [
        [
            policy_name(policy.policy), str(policy.weeks[0]), str(policy.weeks[-1]),
            _percent(policy.weeks[-1].scaled(1 / base)), str(policy.whole),
            f"{policy.worst_page:.3f} ({policy.worst_query})",
            "-" if policy.right_cost is None else _percent(policy.right_cost),
        ]
        for policy in found.policies
    ]  # fmt: skip
    caption = (
        f"Extra clicks a day with bands of 90 %. Production has {base:,.0f} clicks a day on these queries. The worst "
        "page is the lowest expected clicks of any page of any run, relative to production's on the same query. The "
        f"cost is the change of clicks over {DAYS} days on queries whose ranking is already right, within 1 %."
    )
    weeks = ["first week", "last week", "last week, %", f"all {DAYS} days"]
    return TextTable("Policies", ["policy", *weeks, "worst page (query)", "cost if right"], rows, caption)


def _percent(band: "Band") -> str:
    estimate, low, high = (round(100 * value, 1) + 0.0 for value in band)  # + 0.0: no "-0.0"
    return f"{estimate:+.1f} % ({low:+.1f} to {high:+.1f})"


def _decided(found: "Forecast") -> TextTable:
    rows = []
    for policy in found.policies:
        counts = [policy.decided[days][fate] for days in DEADLINES for fate in FATES]
        cells = [f"{count.mean:.1f} ({count.low:.0f} to {count.high:.0f})" for count in counts]
        rows.append([policy_name(policy.policy), *cells])
    caption = (
        f"Queries that decide, of {len(found.queries)}: mean over runs on the fitted model (5 to 95 % of runs on drawn "
        "logs). Changed: by the deadline a certificate says that an item is better than one which production shows "
        "above it. Confirmed: no such, and the certificates together say that every item is better than the next one. "
        "Open: the others."
    )
    groups = [("", 1), *((f"{days} days", len(FATES)) for days in DEADLINES)]
    return TextTable("Queries that decide", ["policy", *FATES * len(DEADLINES)], rows, caption, groups)


def _queries(found: "Forecast") -> TextTable:
    first = found.policies[0]
    rows = [
        [
            query.id, plainly(query.pages_a_day), f"{query.production_clicks:.3f}",
            f"{100 * (query.best_clicks / query.production_clicks - 1):+.1f} %", str(first.by_query[query.id]),
        ]
        for query in sorted(found.queries, key=lambda each: -abs(first.by_query[each.id].estimate))[:MOST_QUERIES]
    ]  # fmt: skip
    caption = (
        f"{len(rows)} of {len(found.queries)} queries, the largest effects first. Room: what the best ranking has "
        "beyond production's, under the fitted model; a noisy fit shows more room than there is."
    )
    columns = ["query", "pages a day", "production's clicks a page", "room", "extra clicks a day, last week"]
    return TextTable("Queries", columns, rows, caption)


def _models(found: "Forecast") -> TextTable | None:
    best_first = sorted(found.log_likelihoods.items(), key=lambda pair: -pair[1])
    caption = (
        "Click models on a quarter of the pages, which was held out: log-likelihood of a page. The best was taken. "
        "Models that hold some page for impossible are left out."
    )
    rows = [[model_name(name), f"{value:.4f}"] for name, value in best_first]
    return TextTable("Click models", ["click model", "log-likelihood"], rows, caption) if rows else None


def _figures(found: "Forecast", studio: Studio) -> list[Section]:
    first = found.policies[0]
    weeks = weeks_figure({policy.policy: policy.weeks for policy in found.policies})
    means = {
        policy.policy: {days: [policy.decided[days][fate].mean for fate in FATES] for days in DEADLINES}
        for policy in found.policies
    }
    ordered = sorted(first.by_query.items(), key=lambda pair: -pair[1].estimate)
    shown = dict(ordered if len(ordered) <= MOST_QUERIES else [*ordered[:20], *ordered[-5:]])
    which = "" if len(ordered) == len(shown) else " The 20 with the most and the 5 with the fewest."
    drawn = {
        "Extra clicks a day, week by week": (
            "weeks", weeks, "Expected clicks beyond production's on the queries of the forecast; bands of 90 %.",
        ),
        "Queries that decide": (
            "decided", decided_figure(means),
            "Mean number over runs on the fitted model. Changed (filled): a certificate put an item above one that "
            "production shows above it. Confirmed (hatched): certificates say that production's order is right "
            "throughout. The others are open (empty).",
        ),
        f"{policy_name(first.policy)} query by query": (
            "queries", queries_figure(first.policy, shown),
            f"Extra clicks a day in the last week, with bands of 90 %.{which}",
        ),
    }  # fmt: skip
    sections = []
    for number, (title, (key, figure, caption)) in enumerate(drawn.items(), 1):
        parts = [(figure, f"{title}. {caption}")]
        drawing = studio.drawing(key, f"Figure {number}", caption, figure, parts, f"forecast-{key}")
        sections.append(Section(f"figure-{key}", title, drawing=drawing))
    return sections


def _facts(found: "Forecast") -> list[tuple[str, Any]]:
    capped = sum(query.played_pages < query.pages_a_day * DAYS for query in found.queries)
    return [
        ("command", found.provenance.get("command", "")),
        ("version", found.provenance.get("version", "")),
        ("seed", found.provenance.get("seed", "")),
        ("decision rule", ", ".join(dict.fromkeys(policy.rule for policy in found.policies))),
        ("certificates", _lifetime(found.certificate_days)),
        ("seconds", found.provenance.get("seconds", "")),
        ("runs", f"{found.replicates} on the fitted model, one on the model of each of {found.replicates} drawn logs"),
        ("queries cut short", f"{capped}: they have more pages than are played, and go on as in their last tenth"),
    ]


def _lifetime(days: float) -> str:
    return f"evidence begins again every {days:g} days, and one holds to the end of the next" if days else "never end"
