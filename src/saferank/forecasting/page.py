"""The page of a forecast: one sentence first, then pictures, tables, and what the numbers mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.files import write_atomically
from saferank.forecasting.playing import FATES
from saferank.forecasting.worlds import DAYS, DEADLINES
from saferank.reporting.figures.forecast import decided_figure, queries_figure, weeks_figure
from saferank.reporting.figures.panels import inline_svg
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import plainly
from saferank.reporting.page import render
from saferank.reporting.sections import Picture, Section, write_figure_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saferank.forecasting.outcome import Band, Forecast, PolicyForecast

MOST_QUERIES = 25
"""So many queries have a row of their own: those with the largest effect, in either direction."""


def write_page(found: "Forecast", out: Path) -> None:
    """Write the page and its figures into ``out``."""
    content = {
        "title": f"Safe re-ranking on {found.log}: a forecast",
        "subtitle": _subtitle(found),
        "forecast": found,
        "summary": _summary(found),
        "policies": [_row(found, policy) for policy in found.policies],
        "decided": [_decided(policy) for policy in found.policies],
        "figures": _figures(found, out),
        "queries": _query_rows(found),
        "models": sorted(found.log_likelihoods.items(), key=lambda pair: -pair[1]),
        "facts": _facts(found),
        "days": DAYS,
        "deadlines": DEADLINES,
    }
    write_atomically(out / "forecast.html", render("forecast.html", **content))


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


def _row(found: "Forecast", policy: "PolicyForecast") -> dict[str, str]:
    base = found.production_clicks_a_day
    return {
        "name": policy_name(policy.policy),
        "first": _clicks(policy.weeks[0]),
        "last": _clicks(policy.weeks[-1]),
        "relative": _percent(policy.weeks[-1].scaled(1 / base)),
        "whole": _clicks(policy.whole),
        "worst": f"{policy.worst_page:.3f} ({policy.worst_query})",
        "cost": "-" if policy.right_cost is None else _percent(policy.right_cost),
    }


def _clicks(band: "Band") -> str:
    return f"{band.estimate:+,.0f} ({band.low:+,.0f} to {band.high:+,.0f})"


def _percent(band: "Band") -> str:
    estimate, low, high = (round(100 * value, 1) + 0.0 for value in band)  # + 0.0: no "-0.0"
    return f"{estimate:+.1f} % ({low:+.1f} to {high:+.1f})"


def _decided(policy: "PolicyForecast") -> tuple[str, list[str]]:
    cells = []
    for days in DEADLINES:
        counts = [policy.decided[days][fate] for fate in FATES]
        cells += [f"{count.mean:.1f} ({count.low:.0f} to {count.high:.0f})" for count in counts]
    return policy_name(policy.policy), cells


def _query_rows(found: "Forecast") -> list[dict[str, str]]:
    first = found.policies[0]
    return [
        {
            "id": query.id,
            "pages": plainly(query.pages_a_day),
            "clicks": f"{query.production_clicks:.3f}",
            "room": f"{100 * (query.best_clicks / query.production_clicks - 1):+.1f} %",
            "extra": _clicks(first.by_query[query.id]),
        }
        for query in sorted(found.queries, key=lambda each: -abs(first.by_query[each.id].estimate))[:MOST_QUERIES]
    ]


def _figures(found: "Forecast", out: Path) -> list[Section]:
    weeks = weeks_figure({policy.policy: policy.weeks for policy in found.policies})
    decided = decided_figure(
        {
            policy.policy: {days: [policy.decided[days][fate].mean for fate in FATES] for days in DEADLINES}
            for policy in found.policies
        }
    )
    first = found.policies[0]
    ordered = sorted(first.by_query.items(), key=lambda pair: -pair[1].estimate)
    shown = dict(ordered if len(ordered) <= MOST_QUERIES else [*ordered[:20], *ordered[-5:]])
    queries = queries_figure(first.policy, shown)
    which = "" if len(ordered) == len(shown) else " The 20 with the most and the 5 with the fewest."
    captions = {
        "weeks": "Expected clicks beyond production's on the queries of the forecast; bands of 90 %.",
        "decided": "Mean number over runs on the fitted model. Changed (filled): a certificate put an item above one "
        "that production shows above it. Confirmed (hatched): certificates say that production's order is right "
        "throughout. The others are open (empty).",
        "queries": f"Extra clicks a day in the last week, with bands of 90 %.{which}",
    }
    return [
        _section("weeks", "Extra clicks a day, week by week", weeks, out, captions["weeks"]),
        _section("decided", "Queries that decide", decided, out, captions["decided"]),
        _section("queries", f"{policy_name(first.policy)} query by query", queries, out, captions["queries"]),
    ]


def _section(key: str, title: str, figure: "Figure", out: Path, caption: str) -> Section:
    files = write_figure_files(figure, out, f"forecast-{key}")
    return Section(key, title, caption, [Picture(inline_svg(figure, key), f"{title}. {caption}")], files)


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
