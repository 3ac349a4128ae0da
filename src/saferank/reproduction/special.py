"""The paper's two special queries: one whose original ranking is optimal, one whose holds none of the best K."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saferank.instances import Instance
from saferank.safety import judge_of, wrong_pairs


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


def special_queries(instances: Sequence[Instance], n_positions: int) -> Special:
    """The two queries, the same ones for all models; of equals the one that comes first, the most frequent.

    Where no query is optimal under every model, the one with the fewest wrong pairs in all; where none lacks all of the
    best under every model, the one that lacks the most under the model that says the least. The counts tell.
    """
    queries = [_query(id, instances, n_positions) for id in dict.fromkeys(instance.id for instance in instances)]
    optimal = min(queries, key=lambda query: (any(query.wrong_pairs.values()), sum(query.wrong_pairs.values())))
    others = [query for query in queries if query.id != optimal.id] or queries
    none = max(others, key=lambda query: (min(query.best_missing.values()), sum(query.best_missing.values())))
    return Special(optimal, none)


def _query(id: str, instances: Sequence[Instance], n_positions: int) -> Query:
    of_query = [instance for instance in instances if instance.id == id]
    original = np.arange(n_positions, dtype=np.uint32)
    grades = {each.model_name: judge_of(each.model.attraction, original).grade for each in of_query}
    return Query(
        id,
        {model: int(wrong_pairs(grade, original)) for model, grade in grades.items()},
        {model: int(np.count_nonzero(grade[original] >= n_positions)) for model, grade in grades.items()},
    )
