"""Fitted models by query: the instances that ``saferank simulate`` plays, and their standard errors.

A fit holds all queries at once. An instance is one query's share of it: the items of its most frequent ranking, in that
order, and as many positions. When more items are asked for than a ranking has, those follow that other pages of the
query showed, the most shown first. Errors are cut out in the same way, and written in the same shape beside it:

    {"about": "...", "errors": [
      {"id": "q1", "model": "pbm", "attraction": [0.01, 0.02, ...], "examination": [0.02, 0.02, ...]}, ...]}
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from saferank.click_models.shapes import PerItem, PerPosition, Triangle
from saferank.files import write_atomically
from saferank.fitting.coins import declared
from saferank.instances import Instance, entry_of
from saferank.logs.records import ClickLog

FEWEST_DISPLAYS = 10
"""An item from beyond the ranking was shown at least so often: of one that was not, the prior alone would say 1/2."""


def instances_of(log: ClickLog, models: Mapping[str, Any], items: int | None = None) -> list[Instance]:
    """One instance per query and model, for the queries that have a ranking; ``models`` is by name, over all pairs.

    ``items`` is the largest number of items of an instance; None: those of the ranking. A query of which the log shows
    fewer has fewer.
    """
    return [
        Instance(log.queries[query], _of_pairs(model, pairs, n_positions), name, tuple(log.pairs[p][1] for p in pairs))
        for query, pairs, n_positions in _ranked(log, items)
        for name, model in models.items()
    ]


def save_errors(path: str | os.PathLike[str], errors: Iterable[Instance], about: str) -> None:
    """Write standard errors, which come as instances whose model holds an error in the place of each parameter."""
    lines = ",\n".join(json.dumps({k: v for k, v in entry_of(each).items() if k != "items"}) for each in errors)
    write_atomically(path, f'{{"about": {json.dumps(about)},\n"errors": [\n{lines}\n]}}\n')


def _ranked(log: ClickLog, items: int | None) -> Iterator[tuple[int, list[int], int]]:
    """Every query that has a ranking, with the places of its items among the pairs, and the length of its ranking."""
    place = {pair: i for i, pair in enumerate(log.pairs)}
    pools = {} if items is None else _pools(log)
    for query, ranking in enumerate(log.rankings):
        if ranking is not None:
            pairs = [place[query, item] for item in ranking]
            with_pool = dict.fromkeys([*pairs, *pools.get(query, ())])  # each once, the ranking first
            yield query, list(with_pool)[:items], len(ranking)


def _pools(log: ClickLog) -> dict[int, list[int]]:
    """By query: the pairs that were shown often enough, the most shown first, of equals the first seen."""
    shown = log.pages.items >= 0
    weight = np.broadcast_to(log.pages.weight[:, None], shown.shape)[shown]
    displays = np.bincount(log.pages.items[shown], weights=weight, minlength=len(log.pairs))
    pools: dict[int, list[int]] = {}
    for pair in np.argsort(-displays, kind="stable").tolist():
        if displays[pair] >= FEWEST_DISPLAYS:
            pools.setdefault(log.pairs[pair][0], []).append(pair)
    return pools


def _of_pairs(model: Any, pairs: list[int], n: int) -> Any:
    """The parameters of these pairs and of the first ``n`` positions."""
    cut = {
        PerItem: lambda field: field[pairs],
        PerPosition: lambda field: field[:n],
        Triangle: lambda field: field[:n, :n],
    }
    hints = declared(type(model))
    return type(model)(*(cut.get(hints[name], lambda field: field)(getattr(model, name)) for name in hints))
