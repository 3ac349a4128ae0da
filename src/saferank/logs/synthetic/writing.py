"""A log in the format yandex-personalized with planted users, written byte by byte in compiled code.

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
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.errors import argument, whole_number, writing
from saferank.files import check_output_file, replacing
from saferank.instances import Instance, check_positions, save_instances
from saferank.instances.embedded import MODELS, embedded_instances
from saferank.logs.formats.fields import Bytes, Ids
from saferank.logs.records import RANKING_LENGTH, check_lengths
from saferank.logs.synthetic.pages import MOST_PAGES, Sessions, Users, new_sessions, new_users, play
from saferank.progress import SESSIONS, progress_of
from saferank.verbs import Ints

_TAB, _NEWLINE, _COMMA, _ZERO = 9, 10, 44, 48
_C, _M, _Q, _T = (ord(letter) for letter in "CMQT")
_DAYS, _USERS = 27, 5_000_000
_NUMBER = 21  # bytes of the longest number and what stands behind it


def longest_session(length: int) -> int:
    """Bytes of a session at most, with pages of ``length`` items."""
    return MOST_PAGES * (6 + 2 * length + 5 * (length + 1)) * _NUMBER + 4 * _NUMBER


class Names(NamedTuple):
    """The numbers that stand in the log for queries and items."""

    query: Ids  # by number of the query
    item: Ids  # [queries, orders, length of a page]


class WrittenPage(NamedTuple):
    """What is needed to write a page and its clicks."""

    number: int  # in the block
    session: int  # id
    serp: int
    time: int


@kernel
def _has(manner: np.uint64, shift: int, bits: int) -> bool:
    """True with probability 1 / 2^bits, by the bits of ``manner`` from ``shift``."""
    return bool((manner >> np.uint64(shift)) & np.uint64((1 << bits) - 1) == np.uint64(0))


@kernel
def _write_number(out: Bytes, at: int, value: int, behind: int) -> int:
    """Write a number and the byte behind it; returns the place after them."""
    end, rest = at + 1, value // 10
    while rest > 0:
        end += 1
        rest //= 10
    out[end] = behind
    for place in range(end - 1, at - 1, -1):
        out[place] = _ZERO + value % 10
        value //= 10
    return end + 1


@kernel
def _write_letter(out: Bytes, at: int, letter: int) -> int:
    out[at], out[at + 1] = letter, _TAB
    return at + 2


@kernel
def _write_user(out: Bytes, at: int, session: int, manner: np.uint64) -> int:
    at = _write_number(out, at, session, _TAB)
    at = _write_letter(out, at, _M)
    at = _write_number(out, at, 1 + session % _DAYS, _TAB)
    return _write_number(out, at, int(np.int64((manner >> np.uint64(32)) % np.uint64(_USERS))), _NEWLINE)


@kernel
def _write_page(out: Bytes, at: int, page: WrittenPage, test: bool, query: int, items: Ids) -> int:
    at = _write_number(out, at, page.session, _TAB)
    at = _write_number(out, at, page.time, _TAB)
    at = _write_letter(out, at, _T if test else _Q)
    at = _write_number(out, at, page.serp, _TAB)
    at = _write_number(out, at, query, _TAB)
    at = _write_number(out, at, 2 * query, _COMMA)
    at = _write_number(out, at, 2 * query + 1, _TAB)
    for k in range(len(items)):
        item = int(np.int64(items[k]))
        at = _write_number(out, at, item, _COMMA)
        at = _write_number(out, at, item // 10, _NEWLINE if k == len(items) - 1 else _TAB)
    return at


@kernel
def _write_click(out: Bytes, at: int, page: WrittenPage, after: int, item: np.uint64) -> int:
    at = _write_number(out, at, page.session, _TAB)
    at = _write_number(out, at, page.time + after, _TAB)
    at = _write_letter(out, at, _C)
    at = _write_number(out, at, page.serp, _TAB)
    return _write_number(out, at, int(np.int64(item)), _NEWLINE)


@kernel
def _write_clicks(out: Bytes, at: int, page: WrittenPage, manner: np.uint64, clicks: Ints, items: Ids) -> int:
    upwards, last = _has(manner, 3, 2), -1
    for step in range(len(clicks)):
        place = len(clicks) - 1 - step if upwards else step
        if clicks[place]:
            at = _write_click(out, at, page, 3 + 2 * step, items[place])
            last = place
    if last >= 0 and _has(manner, 5, 3):
        at = _write_click(out, at, page, 25, items[last])
    return at


@kernel
def _write_session(out: Bytes, at: int, sessions: Sessions, names: Names, span: tuple[int, int], session: int) -> int:
    """Write the pages ``span`` of a session with their clicks."""
    first, end = span
    at = _write_user(out, at, session, sessions.manner[first])
    late = WrittenPage(-1, session, 0, 0)
    time = 0
    for number in range(first, end):
        manner, query = sessions.manner[number], sessions.query[number]
        test = number == end - 1 and _has(manner, 8, 4)
        page = WrittenPage(number, session, number - first, time)
        at = _write_page(
            out, at, page, test, int(np.int64(names.query[query])), names.item[query, sessions.order[number]]
        )
        if late.number >= 0:
            at = _write_clicks_of(out, at, late, sessions, names)
        late = WrittenPage(-1, session, 0, 0)
        if number < end - 1 and _has(manner, 0, 3):
            late = page
        elif not test:
            at = _write_clicks_of(out, at, page, sessions, names)
        time += 20 + int(np.int64((manner >> np.uint64(12)) & np.uint64(255)))
    return at


@kernel
def _write_clicks_of(out: Bytes, at: int, page: WrittenPage, sessions: Sessions, names: Names) -> int:
    number = page.number
    items = names.item[sessions.query[number], sessions.order[number]]
    return _write_clicks(out, at, page, sessions.manner[number], sessions.clicks[number], items)


@kernel
def write_sessions(sessions: Sessions, first_id: int, names: Names, out: Bytes) -> int:
    """Write all sessions, with ids from ``first_id``; returns the number of bytes."""
    at, start = 0, 0
    for number in range(len(sessions.end)):
        end = sessions.end[number]
        at = _write_session(out, at, sessions, names, (start, end), first_id + number)
        start = end
    return at


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
