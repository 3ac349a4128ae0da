"""The answer first: three sentences made from the results, the paper's figures, and where every algorithm ended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polars import DataFrame, col, concat

from saferank.reporting.claims import (
    ALL,
    FAILS,
    HOLDS,
    NONE_OF_BEST,
    OPTIMAL,
    PAPER_SAYS,
    Claim,
    NotRun,
    Place,
    ends_below,
)
from saferank.reporting.figures.curves import curves_figure
from saferank.reporting.frames import ends_of, in_order
from saferank.reporting.looks import ORIGINAL, curve_name, model_name, policy_name
from saferank.reporting.numbers import counted, listed, plainly
from saferank.reporting.pooling import BOLD, Pooled, endings_table, least, pooled
from saferank.reporting.reading import Run
from saferank.reporting.sections import Section, Studio
from saferank.reporting.sensitivity import REVERSED
from saferank.table import TextTable


def sentences(run: Run, place: Place) -> list[tuple[str, str]]:
    """Who improves on production, who breaks safety and who wins, with numbers, as far as the results tell."""
    found = [("Better than production", _improving(run, place)), ("Safety", _safety(run, place))]
    return [(lead, words) for lead, words in [*found, ("Least regret", _winners(run, place))] if words]


def _improving(run: Run, place: Place) -> str:
    """Regret as shares of production's; what Student's t cannot tell apart from it does not improve."""
    parts, lagging = [], []
    for model in run.models:
        base = place.curve(ORIGINAL, model)
        if base is None or not base.regret.end.mean > 0:
            continue
        others = [curve for curve in place.curves if curve.model == model and curve.policy != ORIGINAL]
        judged = [(curve, ends_below(curve.regret.end, base.regret.end).verdict == HOLDS) for curve in others]
        shares = sorted(
            (curve.regret.end.mean / base.regret.end.mean, curve.policy) for curve, better in judged if better
        )
        words = [f"{policy_name(policy)} {100 * share:.0f}\N{NO-BREAK SPACE}%" for share, policy in shares]
        parts += [f"under {model_name(model)} {listed(words)}"] if words else []
        lagging += [f"{policy_name(c.policy)} under {model_name(model)}" for c, better in judged if not better]
    said = f"Regret as a share of {policy_name(ORIGINAL)}'s: {'; '.join(parts)}." if parts else ""
    return " ".join([said, f"No improvement beyond chance: {listed(lagging)}." if lagging else ""]).strip()


def _safety(run: Run, place: Place) -> str:
    parts, broken = [], set()
    for model in run.models:
        curves = [curve for curve in place.curves if curve.model == model and curve.violations.end.mean > 0]
        words = [f"{policy_name(each.policy)} {_about(each.violations.end.mean)}" for each in curves]
        parts += [f"under {model_name(model)} {listed(words)}"] if words else []
        broken |= {curve.policy for curve in curves}
    clean = [policy_name(policy) for policy in run.policies if policy not in broken]
    runs = int(ends_of(run.means.filter(policy=run.policies[0]))["repetitions"].sum())
    never = f"None in {counted(runs, 'run')}{' each' if len(clean) > 1 else ''} of {listed(clean)}."
    said = f"Pages of a run that break the safety limit: {'; '.join(parts)}." if parts else ""
    return " ".join([said, never if clean else ""]).strip()


def _about(count: float) -> str:
    return f"{count:,.0f}" if count >= 10 else plainly(round(count, 2))


def _winners(run: Run, place: Place) -> str:
    """The least regret under every click model, and the least of those that never break safety where it is another."""
    found = []
    for model in run.models:
        curves = [curve for curve in place.curves if curve.model == model]
        first, safe = least(curves), least([curve for curve in curves if not curve.violations.end.mean > 0])
        if first is not None and len(curves) > 1:
            words = f"{model_name(model)}: {curve_name(first.policy)}, {first.regret.end}"
            other = safe is not None and safe is not first
            found.append(f"{words}; of the safe ones {_ended(safe)}" if other else words)
    return f"{'. '.join(found)}." if found else ""


def _ended(curve: Pooled | None) -> str:
    return "" if curve is None else f"{curve_name(curve.policy)}, {curve.regret.end}"


STEMS = {ALL: "all-queries", OPTIMAL: "optimal-original", NONE_OF_BEST: "none-of-best"}


def paper_figures(
    places: Mapping[str, Place], studio: Studio, positions: int, claims: Sequence[Claim], not_run: Sequence[NotRun]
) -> list[Section]:
    """The paper's three figures, each beside what the paper says of it."""
    titles = {
        ALL: "All queries",
        OPTIMAL: "A query whose original ranking is optimal",
        NONE_OF_BEST: f"A query whose original ranking holds none of the best {positions}",
    }
    return [
        _figure(key, f"Figure {number}", title, places.get(key), studio, _here(key, claims, not_run))
        for number, (key, title) in enumerate(titles.items(), 1)
    ]


def _here(key: str, claims: Sequence[Claim], not_run: Sequence[NotRun]) -> list[str]:
    """What the paper says of a figure, and how much of it holds here."""
    own = [claim for claim in claims if claim.question.place == key and claim.of_the_paper]
    parts = []
    for model in dict.fromkeys(claim.model for claim in own):
        judged = [claim for claim in own if claim.model == model]
        held = sum(claim.verdict == HOLDS for claim in judged)
        failing = [f"{claim.question.text}: {claim.numbers}" for claim in judged if claim.verdict == FAILS]
        but = f"; does not hold: {listed(failing)}" if failing else ""
        parts.append(f"under {model_name(model)} {held} of {len(judged)} claims hold{but}")
    missing = sum(each.question.place == key and each.of_the_paper for each in not_run)
    parts += [f"{counted(missing, 'claim')} not run"] if missing else []
    return [f"The paper says: {PAPER_SAYS[key]}", f"Here: {'; '.join(parts)}."] if parts else []


def _figure(key: str, name: str, title: str, place: Place | None, studio: Studio, here: list[str]) -> Section:
    if place is None:
        option = "--optimal ID" if key == OPTIMAL else "--none-of-best ID"
        why = (
            "Left out: the results do not say which query that is. saferank reproduce finds one; for other results "
            f"name one with saferank report {option}."
        )
        return Section(key, f"{name}: {title.lower()}", left_out=why)
    if not place.proper:
        why = f"Left out: no query is like that. The nearest is query {place.instance}: {_lapses(place)}."
        return Section(key, f"{name}: {title.lower()}", left_out=why)
    options = replace(studio.options, columns=None)  # the page sets the width of its own pictures
    by_model = {curve.model: [other for other in place.proper if other.model == curve.model] for curve in place.proper}
    parts = [(curves_figure(curves, options), _in_words(curves)) for curves in by_model.values()]
    whole = curves_figure(place.proper, studio.options)
    drawing = studio.drawing(key, name, f"{title}. {_caption(place, studio)}", whole, parts, STEMS[key])
    return Section(key, f"{name}: {title.lower()}", here, drawing=drawing)


def _lapses(place: Place) -> str:
    """How near a query comes that is not quite what the paper looks at."""
    return ", ".join(f"under {model_name(model)} it has {has}" for model, has in place.lapses.items())


def _in_words(curves: list[Pooled]) -> str:
    regret = ", ".join(f"{curve_name(curve.policy)} {curve.regret.end}" for curve in curves)
    violations = ", ".join(f"{curve_name(curve.policy)} {curve.violations.end}" for curve in curves)
    head = f"{model_name(curves[0].model)}. Cumulative expected regret after {curves[0].rounds[-1]:,} rounds"
    return f"{head}: {regret}. Safety violations a run: {violations}."


def _caption(place: Place, studio: Studio) -> str:
    if place.key == ALL:
        many = counted(place.proper[0].instances, "query", "queries")
        who = (
            f"Curves are means over {many}. Bands are 95 %: the darker for these queries, with other users and coins; "
            "the lighter for other queries of this kind."
        )
    else:
        left_out = f" Not quite like that, and left out: {_lapses(place)}." if place.lapses else ""
        who = f"Query {place.instance}.{left_out} Bands are 95 %, over repetitions."
    return (
        f"Cumulative expected regret (above) and rounds that violate safety (below) by round. {who} "
        f"{studio.options.words}; curves on the shaded strip are exactly zero."
    )


def endings_section(run: Run, place: Place, sensitivity: Run | str) -> Section:
    """Where every algorithm ended; where rules differ, also at one rule, as far as the sensitivity runs have them."""
    title = f"Regret and violations after {run.rounds:,} rounds"
    size = f"{counted(place.curves[0].instances, 'query', 'queries')}, {counted(run.first('repetitions'), 'run')} each"
    seed = f", seed {run.provenance['seed']}" if "seed" in run.provenance else ""
    what = f"± is one standard error of the mean over these queries, from their runs ({size}{seed})"
    caption = f"{title}, a run. {what}. {BOLD}"
    main = endings_table(place.curves, run.policies, run.models, curve_name, title, caption=caption)
    words = ", ".join(f"{policy_name(policy)} by {rule}" for policy, rule in run.rules.items())
    tables = one_rule(run, sensitivity)
    differ = [f"The rules differ: {words}. Part of a difference between them is the rule's."] if words else []
    if words and not tables:
        differ[0] += " For a comparison at one rule: saferank simulate --rule RULE."
    return Section("endings", "Where every algorithm ended", differ, tables=[main, *tables], short="Endings")


def one_rule(main: Run, companion: Run | str) -> list[TextTable]:
    """All curves at one rule, as far as the sensitivity runs have them."""
    if isinstance(companion, str):
        return []
    others = companion.means.filter(~col("instance").str.ends_with(REVERSED))
    return [table for rule in dict.fromkeys(main.rules.values()) if (table := _at_rule(rule, main, others))]


def _at_rule(rule: str, main: Run, others: DataFrame) -> TextTable | None:
    """None where no other policy was played with this rule than in the main results."""
    own = [policy for policy in main.policies if main.rules.get(policy, rule) == rule]
    moved = others.filter(~col("policy").is_in(own), col("policy").is_in(main.policies), rule=rule)
    if moved.is_empty() or not any(policy in main.rules for policy in own):
        return None
    both = concat([main.means.filter(col("policy").is_in(own)), moved])
    there = both["policy"].n_unique()
    common = both.filter(col("policy").n_unique().over("model", "instance") == there)
    curves, queries = pooled(common), common["instance"].n_unique()
    played = "query that was" if queries == 1 else f"{queries} queries that were"
    caption = f"All policies at {rule}, on the {played} played so; ± one standard error. {BOLD}"
    policies = [policy for policy in main.policies if policy in in_order(common, "policy")]
    return endings_table(curves, policies, main.models, policy_name, f"At the rule {rule}", "one-rule", caption)
