"""Fitted models by query: the instances that ``saferank simulate`` plays, and their standard errors.

A fit holds all queries at once. An instance is one query's share of it: the items of its most frequent ranking of ten,
in that order, and as many positions. Errors are cut out in the same way, and written in the same shape beside it:

    {"about": "...", "errors": [
      {"id": "q1", "model": "pbm", "attraction": [0.01, 0.02, ...], "examination": [0.02, 0.02, ...]}, ...]}
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from saferank.click_models.shapes import PerItem, PerPosition, Triangle, field_shapes
from saferank.datasets.sessions import ClickLog
from saferank.fitting.coins import declared
from saferank.instances import Instance
from saferank.json_files import write_atomically


def instances_of(log: ClickLog, models: Mapping[str, Any]) -> list[Instance]:
    """One instance per query and model, for the queries that have a ranking; ``models`` is by name, over all pairs."""
    return [
        Instance(log.queries[query], _of_pairs(model, pairs), name, items)
        for query, items, pairs in _ranked(log)
        for name, model in models.items()
    ]


def save_errors(path: str | os.PathLike[str], errors: Iterable[Instance], about: str) -> None:
    """Write standard errors, which come as instances whose model holds an error in the place of each parameter."""
    lines = ",\n".join(json.dumps(_entry(instance)) for instance in errors)
    write_atomically(path, f'{{"about": {json.dumps(about)},\n"errors": [\n{lines}\n]}}\n')


def _ranked(log: ClickLog) -> Iterator[tuple[int, tuple[str, ...], list[int]]]:
    """Every query that has a ranking, with its items and their places among the pairs."""
    place = {pair: i for i, pair in enumerate(log.pairs)}
    for query, items in enumerate(log.rankings):
        if items is not None:
            yield query, items, [place[query, item] for item in items]


def _of_pairs(model: Any, pairs: list[int]) -> Any:
    n = len(pairs)
    cut = {
        PerItem: lambda field: field[pairs],
        PerPosition: lambda field: field[:n],
        Triangle: lambda field: field[:n, :n],
    }
    hints = declared(type(model))
    return type(model)(*(cut.get(hints[name], _as_it_is)(getattr(model, name)) for name in hints))


def _as_it_is(field: Any) -> Any:
    return field


def _entry(instance: Instance) -> dict[str, object]:
    shapes = field_shapes(type(instance.model))
    fields = {name: shape.write(getattr(instance.model, name)) for name, shape in shapes.items()}
    return {"id": instance.id, "model": instance.model_name, **fields}
