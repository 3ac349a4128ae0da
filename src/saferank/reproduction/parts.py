"""Everything that a reproduction plays: the paper's experiment, what the paper left open, and a study beyond it.

The paper has two special queries: one whose original ranking is optimal, one whose holds none of the best K.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from saferank.click_models.shapes import PerItem
from saferank.errors import ArgumentError
from saferank.fitting.coins import declared
from saferank.instances import Instance, first_queries
from saferank.instances.embedded import MODELS, embedded_instances
from saferank.policies.bubble_rank import ALL_CANDIDATES, SHOWN_ONLY
from saferank.policies.registry import PAPER, policies_of, policy_kind
from saferank.reporting.sensitivity import REVERSED
from saferank.reproduction.protocol import EMBEDDED, Protocol
from saferank.safety import judge_of, wrong_pairs
from saferank.simulation.experiment import Cell, cells_of


class Query(NamedTuple):
    """What the models of a query say about its original ranking."""

    id: str
    wrong_pairs: dict[str, int]  # by model: V(original)
    best_missing: dict[str, int]  # by model: how many of the original items are not among the best K


class Special(NamedTuple):
    """The two queries that the paper looks at on their own."""

    optimal: Query
    none_of_best: Query

    def facts(self) -> dict[str, Any]:
        """As results tell it."""
        return {
            "optimal": {"instance": self.optimal.id, "wrong_pairs": self.optimal.wrong_pairs},
            "none_of_best": {"instance": self.none_of_best.id, "best_missing": self.none_of_best.best_missing},
        }


def special_queries(
    instances: Sequence[Instance], n_positions: int, optimal: str | None = None, none_of_best: str | None = None
) -> Special:
    """The two queries, the same ones for all models; of equals the one that comes first, the most frequent.

    Either may be told by its id.

    Where no query is optimal under every model, the one with the fewest wrong pairs in all; where none lacks all of the
    best under every model, the one that lacks the most under the model that says the least. The counts tell.
    """
    queries = [_query(id, instances, n_positions) for id in dict.fromkeys(instance.id for instance in instances)]
    told = {name: _told(queries, id, name) for name, id in (("optimal", optimal), ("none_of_best", none_of_best))}
    best = told["optimal"] or min(
        queries, key=lambda query: (any(query.wrong_pairs.values()), sum(query.wrong_pairs.values()))
    )
    others = [query for query in queries if query.id != best.id] or queries
    none = told["none_of_best"] or max(
        others, key=lambda query: (min(query.best_missing.values()), sum(query.best_missing.values()))
    )
    return Special(best, none)


def _told(queries: Sequence[Query], id: str | None, name: str) -> Query | None:
    if id is None:
        return None
    found = next((query for query in queries if query.id == id), None)
    if found is None:
        some = ", ".join(repr(query.id) for query in queries[:5])
        raise ArgumentError(name, f"no query {id!r} among the {len(queries)} that are played; there are {some}, ...")
    return found


def _query(id: str, instances: Sequence[Instance], n_positions: int) -> Query:
    of_query = [instance for instance in instances if instance.id == id]
    original = np.arange(n_positions, dtype=np.uint32)
    grades = {each.model_name: judge_of(each.model.attraction, original).grade for each in of_query}
    return Query(
        id,
        {model: int(wrong_pairs(grade, original)) for model, grade in grades.items()},
        {model: int(np.count_nonzero(grade[original] >= n_positions)) for model, grade in grades.items()},
    )


SAFE = tuple(name for name in policies_of(PAPER) if policy_kind(name).safe)
"""Those of the paper that promise safety: what it left open is about them."""
STUDIED = "kl-ucb-br"


@dataclass(frozen=True)
class Parts:
    """The cells of each part; a part that was left out has none."""

    paper: list[Cell]
    sensitivity: list[Cell]
    study: list[Cell]

    @property
    def cells(self) -> list[Cell]:
        """All of them, in one row."""
        return [*self.paper, *self.sensitivity, *self.study]


def study_sets(protocol: Protocol, others: Mapping[str, Sequence[Instance]]) -> dict[str, list[Instance]]:
    """The instance sets of the study: the first queries of the embedded one under all models, and of others.

    An id that an earlier set has too gets the name of its own set: results know instances by their ids alone.
    """
    size = protocol.sizes.study_queries
    embedded = embedded_instances(size, models=MODELS)
    sets = {EMBEDDED: embedded, **others}
    taken: set[str] = set()
    apart: dict[str, list[Instance]] = {}
    for name, instances in sets.items():
        apart[name] = [_renamed(instance, name, taken) for instance in first_queries(instances, size)]
        taken |= {instance.id for instance in apart[name]}
    return apart


def _renamed(instance: Instance, set_name: str, taken: set[str]) -> Instance:
    while instance.id in taken:
        instance = replace(instance, id=f"{instance.id} ({set_name})")
    return instance


def parts_of(
    protocol: Protocol, instances: Sequence[Instance], special: Special, sets: Mapping[str, Sequence[Instance]]
) -> Parts:
    """The cells of all parts that the protocol wants."""
    wanted = protocol.parts
    return Parts(
        paper=cells_of(instances, protocol.plan()),
        sensitivity=_sensitivity(protocol, _some(protocol, instances, special)) if "sensitivity" in wanted else [],
        study=_study(protocol, sets) if "study" in wanted else [],
    )


def _some(protocol: Protocol, instances: Sequence[Instance], special: Special) -> list[Instance]:
    """The special queries and the most frequent others."""
    first = {instance.id for instance in first_queries(instances, protocol.sizes.sensitivity_queries)}
    wanted = first | {special.optimal.id, special.none_of_best.id}
    return [instance for instance in instances if instance.id in wanted]


def sensitivity_rules(protocol: Protocol) -> tuple[str, ...]:
    """The rule of the run, delta = 1/T, T^-4 and 0.01, and the anytime rule at 1/T."""
    quartic = max(2, protocol.rounds) ** -4.0
    return tuple(dict.fromkeys([protocol.rule, "paper:1/T", f"paper:{quartic:.6g}", "paper:0.01", "anytime:1/T"]))


def _sensitivity(protocol: Protocol, instances: Sequence[Instance]) -> list[Cell]:
    """Rules, BubbleRank's candidates and duels, and the order of candidates, which breaks KL-UCB-BR's ties."""
    repetitions = protocol.sizes.sensitivity_repetitions
    safe = tuple(policy for policy in SAFE if policy in (protocol.policies or ()))
    plans = [protocol.plan(repetitions, policies=safe, rule=rule) for rule in sensitivity_rules(protocol) if safe]
    cells = [cell for plan in plans for cell in cells_of(instances, plan)]
    if "bubble-rank" in safe:
        cells += cells_of(instances, protocol.plan(repetitions, policies=(ALL_CANDIDATES.name, SHOWN_ONLY.name)))
    if "kl-ucb-br" in safe:
        turned = [candidates_reversed(instance, protocol.positions) for instance in instances]
        cells += cells_of(turned, protocol.plan(repetitions, policies=("kl-ucb-br",)))
    return cells


def _study(protocol: Protocol, sets: Mapping[str, Sequence[Instance]]) -> list[Cell]:
    """The paper's rule and the anytime rule at the same provable error."""
    instances = [instance for each in sets.values() for instance in each]
    plans = [
        protocol.plan(protocol.sizes.study_repetitions, policies=(STUDIED,), rule=rule)
        for rule in ("paper:1/T", "anytime:1/T")
    ]
    return [cell for plan in plans for cell in cells_of(instances, plan)]


def candidates_reversed(instance: Instance, n_positions: int) -> Instance:
    """The instance with its unranked items in the opposite order."""
    model, n_items = instance.model, len(instance.items)
    places = [*range(n_positions), *range(n_items - 1, n_positions - 1, -1)]
    fields = {name: getattr(model, name)[places] for name, hint in declared(type(model)).items() if hint == PerItem}
    items = tuple(instance.items[place] for place in places)
    return replace(instance, id=instance.id + REVERSED, model=model._replace(**fields), items=items)
