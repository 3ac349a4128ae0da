"""Where claims are made and figures are drawn: on all queries, and on the paper's two characteristic ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import ReportError, Run

ALL, OPTIMAL, NONE_OF_BEST = "all", "optimal", "none_of_best"
PHRASES = {
    ALL: "on all queries",
    OPTIMAL: "on the query whose original ranking is optimal",
    NONE_OF_BEST: "on the query whose original ranking holds none of the best",
}
_SHORTFALL = {OPTIMAL: "wrong_pairs", NONE_OF_BEST: "best_missing"}


@dataclass(frozen=True)
class Place:
    """Some queries of a run and the curves of every policy on them."""

    key: str
    curves: list[Pooled]
    instance: str | None = None
    lapses: Mapping[str, str] = field(default_factory=dict)
    """By model: what the original ranking has that it should not, in words; nothing where the query is as it should."""

    def curve(self, policy: str, model: str) -> Pooled | None:
        """One curve, if it was run."""
        return next((c for c in self.curves if (c.policy, c.model) == (policy, model)), None)


def places_of(run: Run, chosen: Mapping[str, str]) -> dict[str, Place]:
    """All queries, and the characteristic ones that the results name or that were ``chosen`` (instance ids by key)."""
    found = {ALL: Place(ALL, _curves(run))}
    for key in (OPTIMAL, NONE_OF_BEST):
        place = _chosen(run, key, chosen[key]) if key in chosen else _named(run, key)
        if place is not None:
            found[key] = place
    return found


def _curves(run: Run, instance: str | None = None) -> list[Pooled]:
    by_model = {model: [r for r in run.results if r.model == model] for model in run.models}
    ordered = [result for results in by_model.values() for result in results]
    return pooled([result for result in ordered if instance in (None, result.instance)])


def _chosen(run: Run, key: str, instance: str) -> Place:
    known = dict.fromkeys(result.instance for result in run.results)
    if instance not in known:
        some = ", ".join(map(repr, list(known)[:5]))
        raise ReportError(f"{run.path}: no results of instance {instance!r}; there are {some}{_more(len(known) - 5)}")
    return Place(key, _curves(run, instance), instance)


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _named(run: Run, key: str) -> Place | None:
    """The query that ``saferank reproduce`` found, if its results are there."""
    special = run.reproduction.get("special")
    facts: Any = special.get(key) if isinstance(special, dict) else None
    if not isinstance(facts, dict) or not any(result.instance == facts.get("instance") for result in run.results):
        return None
    measure = facts.get(_SHORTFALL[key])
    counts = {m: n for m, n in measure.items() if isinstance(n, int)} if isinstance(measure, dict) else {}
    lapses = {model: words for model, n in counts.items() if (words := _lapse(key, n, run.results[0].positions))}
    return Place(key, _curves(run, facts["instance"]), facts["instance"], lapses)


def _lapse(key: str, count: int, positions: int) -> str:
    """What keeps a query from being optimal or without any of the best; nothing when it is."""
    if key == OPTIMAL:
        return "" if count == 0 else "1 wrong pair" if count == 1 else f"{count} wrong pairs"
    return "" if count >= positions else f"{positions - count} of the best {positions}"
