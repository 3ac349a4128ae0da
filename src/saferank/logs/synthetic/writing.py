"""A log in the format yandex-personalized with planted users.

What does not matter to a click model makes the log as untidy as a real one, by the random bits of each page. One page
in eight has its clicks written only after the next page of the session, with their earlier times; on one in four the
lower items are clicked first; on one in eight an item is clicked once more; one session in sixteen ends with a T
record, whose clicks are kept back.

What an estimator should find in it is known. The truth is returned as instances, named like the output of a fit: query
number q (from 0) has the id q + 1001, and its item number i (from 0, in production's order) the id
1000 * (q + 1001) + i + 1. The same seed, instances and number of sessions give the same bytes.
"""

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from saferank.errors import argument, whole_number, writing
from saferank.files import check_output_file, replacing
from saferank.instances import Instance, check_positions, save_instances
from saferank.instances.embedded import MODELS, embedded_instances
from saferank.logs.formats.fields import Ids
from saferank.logs.records import RANKING_LENGTH, check_lengths
from saferank.logs.synthetic.pages import Users, new_sessions, new_users, play
from saferank.progress import SESSIONS, progress_of

_DAYS, _USERS = 27, 5_000_000


class LoggedPage(NamedTuple):
    """A page of a session: what a log says of it, and random bits for everything that does not matter to a model."""

    shown: str  # ids of the query and of its terms, and the items
    items: list[int]
    clicks: list[int]
    manner: int

    def has(self, shift: int, bits: int) -> bool:
        """True with probability 1 / 2^bits, by the random bits from ``shift``."""
        return not self.manner >> shift & (1 << bits) - 1

    def clicked(self, session: int, serp: int, time: int) -> Iterator[str]:
        """The lines of its clicks, from the top or from the bottom, the last one perhaps once more."""
        steps = list(zip(self.items, self.clicks, strict=True))
        if self.has(3, 2):
            steps.reverse()
        seconds = [(3 + 2 * step, item) for step, (item, click) in enumerate(steps) if click]
        if seconds and self.has(5, 3):
            seconds.append((25, seconds[-1][1]))
        for after, item in seconds:
            yield f"{session}\t{time + after}\tC\t{serp}\t{item}\n"


def session_lines(session: int, pages: Sequence[LoggedPage]) -> Iterator[str]:
    """The lines of a session: its user, its pages, and their clicks, which may come after the next page."""
    yield f"{session}\tM\t{1 + session % _DAYS}\t{(pages[0].manner >> 32) % _USERS}\n"
    late: Iterator[str] = iter(())
    time = 0
    for serp, page in enumerate(pages):
        is_last = serp == len(pages) - 1
        test = is_last and page.has(8, 4)
        yield f"{session}\t{time}\t{'T' if test else 'Q'}\t{serp}\t{page.shown}\n"
        yield from late
        late = page.clicked(session, serp, time)
        if test or is_last or not page.has(0, 3):
            yield from () if test else late
            late = iter(())
        time += 20 + (page.manner >> 12 & 255)


_BLOCK = 4096
_FIRST_QUERY = 1001
_MOST_ITEMS = 1000


def _no_progress(n_sessions: int) -> None:
    pass


def planted_instances(queries: int, model: str, seed: int = 1, n_items: int = RANKING_LENGTH) -> list[Instance]:
    """The first embedded instances of a click model."""
    return embedded_instances(queries, n_items, models=(model,), seed=seed)


def write_synthetic_log(
    path: str | os.PathLike[str],
    instances: Sequence[Instance],
    sessions: int,
    seed: int = 0,
    progress: Callable[[int], object] = _no_progress,
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


def _blocks(users: Users, n_sessions: int) -> Iterator[tuple[bytes, int]]:
    """The bytes of the log, and how many sessions they are."""
    names = _item_names(np.arange(len(users.instances))[:, None, None], users.rankings).tolist()
    shown = [[_shown(_FIRST_QUERY + query, items) for items in orders] for query, orders in enumerate(names)]
    block = new_sessions(_BLOCK, users.rankings.shape[2])
    for first in range(0, n_sessions, _BLOCK):
        some = block._replace(end=block.end[: n_sessions - first])
        play(users, some)
        ends = some.end.tolist()
        columns = (column[: ends[-1]].tolist() for column in (some.query, some.order, some.clicks, some.manner))
        pages = [LoggedPage(shown[q][o], names[q][o], *rest) for q, o, *rest in zip(*columns, strict=True)]
        spans = enumerate(pairwise([0, *ends]), first)
        lines = (line for session, (start, end) in spans for line in session_lines(session, pages[start:end]))
        yield "".join(lines).encode(), len(ends)


def _shown(query: int, items: list[int]) -> str:
    return "\t".join([str(query), f"{2 * query},{2 * query + 1}", *(f"{item},{item // 10}" for item in items)])


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file, packed if its name says so, that takes the place of ``target`` when it is complete."""
    with replacing(target) as raw:
        if target.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
            yield cast(BinaryIO, packed)


def synthesize_log(
    out: str | os.PathLike[str],
    sessions: int = 100_000,
    queries: int = 20,
    model: str = "pbm",
    *,
    page_length: int = RANKING_LENGTH,
    items: int | None = None,
    seed: int = 0,
    truth: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> list[Instance]:
    """Write a log in the format yandex-personalized, packed if its name ends in ``.gz``, whose users are known.

    The users are those of the embedded instances, ``items`` of them a query (None: 10, or those of a page). With more
    items than a page shows, those beyond it are on some of the pages. ``truth`` is an instance file to write the users
    to. Both files are written atomically. Returns the users as the log names them. What cannot be used is an
    ``ArgumentError``, before anything is written.
    """
    whole_number(sessions, "sessions")
    check_lengths(page_length, items)
    with argument("model"):
        if model not in MODELS:
            raise ValueError(f"no embedded instances for click model {model!r}; known ones: {', '.join(MODELS)}")
    planted = planted_instances(queries, model, n_items=items or max(page_length, RANKING_LENGTH))
    wide = items is not None and items > page_length
    path = Path(out)
    check_output_file(path)
    with writing(path), progress_of(progress).meter(sessions, SESSIONS) as meter:
        users = write_synthetic_log(path, planted, sessions, seed, meter, page_length=page_length, all_items=wide)
    if truth is not None:
        with writing(truth):
            save_instances(truth, users, about=f"users of a synthetic log of {sessions} sessions, seed {seed}")
    return users
