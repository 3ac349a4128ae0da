"""How much results depend on what the paper leaves open: each variant beside the default.

Variants are known by their names: ``bubble-rank:all-candidates`` is a variant of a policy, ``(candidates reversed)``
behind an instance is another order for ties, and any rule other than the run's own is another decision rule.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saferank.reporting.claims import ALL, PHRASES, Place, endings, final_regret, final_violations
from saferank.reporting.looks import policy_name
from saferank.reporting.numbers import Measured, ratio
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import Run
from saferank.reporting.readings import WORDS
from saferank.simulation.results import Result

REVERSED = " (candidates reversed)"


@dataclass(frozen=True)
class Variant:
    """One way to fill what the paper leaves open, for one policy."""

    policy: str
    change: str | None
    rule: str | None
    reversed: bool

    def words(self, default: "Variant") -> str:
        """What is different from the default."""
        if self == default:
            return f"default ({self.rule})" if self.rule else "default"
        changes = [] if self.rule == default.rule else [f"rule {self.rule}"]
        changes += [WORDS.get(self.change, self.change)] if self.change else []
        changes += ["ties: candidates in reverse order"] if self.reversed else []
        return "; ".join(changes)


@dataclass(frozen=True)
class Effect:
    """A variant under one click model."""

    regret: Measured
    ratio: Measured | None
    violations: Measured
    wrong_certificates: float | None
    queries: int


@dataclass(frozen=True)
class Row:
    """A variant under every click model; None where it was not run."""

    policy: str
    words: str
    is_default: bool
    effects: list[Effect | None]


def variant_of(result: Result) -> Variant:
    """Which variant a result belongs to."""
    policy, _, change = result.policy.partition(":")
    return Variant(policy, change or None, result.rule, result.instance.endswith(REVERSED))


def sensitivity_tables(
    run: Run, default_rule: str | None, main: Sequence[Result], places: Mapping[str, Place]
) -> list[tuple[str, list[Row]]]:
    """All queries that were varied together, then each special query alone: a title and rows for each."""
    queries = {_query(result) for result in run.results}
    together = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'} together"
    tables: list[tuple[str, Collection[str], Collection[str]]] = [(together, queries, run.models)]
    for key, place in places.items():
        proper = [model for model in run.models if model not in place.lapses]
        if key != ALL and place.instance in queries and proper:
            tables.append((f"{PHRASES[key]} alone".removeprefix("on "), [place.instance], proper))
    made = []
    for title, wanted, models in tables:
        own = [result for result in run.results if _query(result) in wanted and result.model in models]
        part = Run(run.path, own, run.provenance)
        rows = sensitivity_rows(part, default_rule, [result for result in main if _query(result) in wanted], run.models)
        made.append((title, rows))
    return [(title, rows) for title, rows in made if rows]


def sensitivity_rows(
    run: Run, default_rule: str | None, main: Sequence[Result], models: Sequence[str] | None = None
) -> list[Row]:
    """The table, defaults first; what the run itself lacks as a default is looked up in the ``main`` results."""
    variants = dict.fromkeys(variant_of(result) for result in run.results)
    rows = []
    for policy in dict.fromkeys(variant.policy for variant in variants):
        rules = {variant.rule for variant in variants if variant.policy == policy}
        default = Variant(policy, None, default_rule if rules != {None} else None, reversed=False)
        others = [variant for variant in variants if variant.policy == policy and variant != default]
        rows += [_row(variant, default, run, main, models or run.models) for variant in (default, *others)]
    return [row for row in rows if any(row.effects)]


def _row(variant: Variant, default: Variant, run: Run, main: Sequence[Result], models: Sequence[str]) -> Row:
    effects = [_effect(variant, default, model, run, main) for model in models]
    return Row(policy_name(variant.policy), variant.words(default), variant == default, effects)


def _effect(variant: Variant, default: Variant, model: str, run: Run, main: Sequence[Result]) -> Effect | None:
    own = {_query(r): r for r in run.results if r.model == model and variant_of(r) == variant}
    usual = {_query(r): r for r in (*main, *run.results) if r.model == model and variant_of(r) == default}
    if variant == default:
        played = {_query(r) for r in run.results if r.model == model and variant_of(r).policy == variant.policy}
        own = {query: result for query, result in usual.items() if query in played}
    if not own:
        return None
    (curve,) = pooled(list(own.values()))
    compared = None
    if variant != default and own.keys() <= usual.keys():
        (base,) = pooled([usual[query] for query in own])
        compared = ratio(final_regret(curve), final_regret(base)) if _same_length(curve, base) else None
    wrong = None if curve.wrong_certificates is None else float(curve.wrong_certificates[-1])
    return Effect(final_regret(curve), compared, final_violations(curve), wrong, curve.instances)


@dataclass(frozen=True)
class OneRule:
    """Every policy that was played with a rule, on the same queries; those that take none beside them."""

    rule: str
    queries: int
    rows: list[tuple[str, list[tuple[str, str]]]]  # a name, and by click model regret and violations


def one_rule(main: Run, companion: Run | str) -> dict[str, Any]:
    """How curves differ in rule, and all of them at one rule, as far as the sensitivity runs have them."""
    rules = main.rules
    words = ", ".join(f"{policy_name(policy)} by {rule}" for policy, rule in rules.items())
    others = [] if isinstance(companion, str) else [r for r in companion.results if not r.instance.endswith(REVERSED)]
    tables = [_at_rule(rule, main, others) for rule in dict.fromkeys(rules.values())]
    return {"words": words, "tables": [table for table in tables if table is not None]}


def _at_rule(rule: str, main: Run, others: Sequence[Result]) -> OneRule | None:
    """None where no other policy was played with this rule than in the main results."""
    own = {p: [r for r in main.results if r.policy == p] for p in main.policies if main.rules.get(p, rule) == rule}
    moved = {p: [r for r in others if (r.policy, r.rule) == (p, rule)] for p in main.policies if p not in own}
    there = {policy: results for policy, results in {**own, **moved}.items() if results}
    if not any(moved.values()) or not any(policy in main.rules for policy in own):
        return None
    played = [{(r.model, r.instance) for r in results} for results in there.values()]
    common = set.intersection(*played)
    curves = pooled([r for results in there.values() for r in results if (r.model, r.instance) in common])
    rows = endings(curves, [policy for policy in main.policies if policy in there], main.models, policy_name)
    return OneRule(rule, len({instance for _, instance in common}), rows)


def _same_length(one: Pooled, other: Pooled) -> bool:
    return bool(one.rounds[-1] == other.rounds[-1])


def _query(result: Result) -> str:
    return result.instance.removesuffix(REVERSED)
