"""A log in the format yandex-personalized with planted users: what an estimator should find in it is known.

The truth is returned as instances, named like the output of a fit: query number q (from 0) has the id q + 1001, and its
item number i (from 0, in production's order) the id 1000 * (q + 1001) + i + 1. The same seed, instances and number of
sessions give the same bytes.
"""

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from saferank.files import replacing
from saferank.instances import Instance, check_positions
from saferank.instances.embedded import embedded_instances
from saferank.logs.formats.fields import Ids
from saferank.logs.records import RANKING_LENGTH
from saferank.logs.synthetic.lines import Names, longest_session, write_sessions
from saferank.logs.synthetic.pages import Users, new_sessions, new_users, play

_BLOCK = 4096
_FIRST_QUERY = 1001
_MOST_ITEMS = 1000


def _nobody(n_sessions: int) -> None:
    pass


def planted_instances(queries: int, model: str, seed: int = 1, n_items: int = RANKING_LENGTH) -> list[Instance]:
    """The first embedded instances of a click model."""
    return embedded_instances(queries, n_items, models=(model,), seed=seed)


def write_synthetic_log(
    path: str | os.PathLike[str],
    instances: Sequence[Instance],
    sessions: int,
    seed: int = 0,
    progress: Callable[[int], object] = _nobody,
    *,
    page_length: int = RANKING_LENGTH,
    all_items: bool = False,
) -> list[Instance]:
    """Write a log (packed if its name ends in ``.gz``) of users of ``instances``; returns these as the log names them.

    The file appears when it is complete. ``progress`` is called with the number of sessions that were written since.
    Pages have ``page_length`` items; with ``all_items`` every item of a query is on some of its pages, and all
    instances must have equally many.
    """
    for instance in instances:
        _check(instance, page_length)
    if all_items and len({len(instance.items) for instance in instances}) > 1:
        raise ValueError("all_items needs instances with equally many items")
    users = new_users(tuple(instances), seed, page_length, all_items)
    with _replacing(Path(path)) as file:
        for lines, count in _blocks(users, sessions):
            file.write(lines)
            progress(count)
    return [_as_logged(instance, query) for query, instance in enumerate(instances)]


def _check(instance: Instance, page_length: int) -> None:
    check_positions(instance, page_length, "synthetic log")
    if len(instance.items) >= _MOST_ITEMS:
        raise ValueError(f"instance {instance.id!r} has {len(instance.items)} items, expected fewer than {_MOST_ITEMS}")


def _as_logged(instance: Instance, query: int) -> Instance:
    names = _item_names(np.array(query), np.arange(len(instance.items)))
    return replace(instance, id=str(_FIRST_QUERY + query), items=tuple(map(str, names.tolist())))


def _item_names(query: NDArray[Any], item: NDArray[Any]) -> Ids:
    query_name = query.astype(np.uint64) + np.uint64(_FIRST_QUERY)
    return query_name * np.uint64(_MOST_ITEMS) + item.astype(np.uint64) + np.uint64(1)


def _blocks(users: Users, n_sessions: int) -> Iterator[tuple[memoryview, int]]:
    """The bytes of the log, and how many sessions they are."""
    queries = np.arange(len(users.instances), dtype=np.uint64)
    names = Names(queries + np.uint64(_FIRST_QUERY), _item_names(queries[:, None, None], users.rankings))
    length = users.rankings.shape[2]
    block, out = new_sessions(_BLOCK, length), np.zeros(_BLOCK * longest_session(length), np.uint8)
    for first in range(0, n_sessions, _BLOCK):
        some = block._replace(end=block.end[: n_sessions - first])
        play(users, some)
        yield memoryview(out)[: write_sessions(some, first, names, out)], len(some.end)  # type: ignore[arg-type]


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file, packed if its name says so, that takes the place of ``target`` when it is complete."""
    with replacing(target) as raw:
        if target.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
            yield cast(BinaryIO, packed)
