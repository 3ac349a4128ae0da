"""Records of closed pages, range-checked and laid out for the compiled fold."""

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from saferank.live.replay import ISSUED, LEARNT, Pages, new_pages
from saferank.store.page_record import Law, PageRecord
from saferank.verbs import NOBODY


class Lesson(NamedTuple):
    """A closed page that counts; without clicks it is counted and teaches nothing else."""

    record: PageRecord | None  # None: no clicks
    clicks: int  # a bit for each shown place


Laid = tuple[Pages, list[int]]
"""Operations, and for every one the number of its lesson."""


def as_pages(lessons: Sequence[Lesson], index: Mapping[str, int], k: int, form: str) -> Laid:
    """The operations of lessons, and for every operation the number of its lesson.

    A page that names an item that is not known any more, or that was drawn by another form of the policy, teaches
    nothing: its odds mean something else.
    """
    operations = [
        (kind, number)
        for number, lesson in enumerate(lessons)
        for kind in ((ISSUED, LEARNT) if _teaches(lesson, index, k, form) else (ISSUED,))
    ]
    learnt = [(at, lessons[number]) for at, (kind, number) in enumerate(operations) if kind == LEARNT]
    places = max((len(lesson.record.row) for _, lesson in learnt if lesson.record is not None), default=k)
    pages = new_pages(len(operations), k, max(places, k + 1))
    if learnt:
        _lay_out(pages, learnt, index)
    return pages, [number for _, number in operations]


def renumbered(pages: Pages, numbers: Sequence[int]) -> Pages:
    """The operations with other numbers of items; a page with an item that has none (-1) teaches nothing any more."""
    table = np.array(numbers, np.int64)
    used = np.arange(pages.ranking.shape[1]) < pages.places[:, None]
    ranking = np.where(used, table[pages.ranking], 0)
    challenger = np.where(pages.challenger == NOBODY, NOBODY, table[pages.challenger])
    whole = np.asarray((ranking >= 0).all(axis=1))
    return pages._replace(
        operation=np.where(whole, pages.operation, ISSUED),
        ranking=np.where(whole[:, None], ranking, 0).astype(np.uint32),
        challenger=np.where(whole, challenger, NOBODY),
    )


def _teaches(lesson: Lesson, index: Mapping[str, int], k: int, form: str) -> bool:
    record = lesson.record
    if record is None or record.k != k or lesson.clicks >> k or not record.row:
        return False
    return record.form == form and all(item in index for item in record.row)


def _lay_out(pages: Pages, learnt: list[tuple[int, Lesson]], index: Mapping[str, int]) -> None:
    """Put the pages to be learnt into their rows, all at once: a replay lays out a million."""
    width, k = pages.ranking.shape[1], pages.clicks.shape[1]
    rows = [at for at, _ in learnt]
    records = [lesson.record for _, lesson in learnt if lesson.record is not None]
    pages.operation[rows] = LEARNT
    pages.round[rows] = [record.round for record in records]
    pages.places[rows] = [len(record.row) for record in records]
    pages.ranking[rows] = [_filled([index[item] for item in record.row], width) for record in records]
    pages.start[rows] = [_filled_bytes(record.law.start, width) for record in records]
    pages.end[rows] = [_filled_bytes(record.law.end, width) for record in records]
    pages.challenger[rows] = [_challenger(record, index) for record in records]
    for at, record in zip(rows, records, strict=True):
        if record.law.drawn:
            _lay_out_draw(pages, at, record.law)
    size = (k + 7) // 8
    bits = np.frombuffer(b"".join(lesson.clicks.to_bytes(size, "little") for _, lesson in learnt), np.uint8)
    pages.clicks[rows] = np.unpackbits(bits.reshape(-1, size), axis=1, count=k, bitorder="little")


def _lay_out_draw(pages: Pages, at: int, law: Law) -> None:
    places = len(law.weight)
    pages.frozen[at] = 1
    pages.weight[at, :places] = law.weight
    pages.exchanges[at, :places] = np.array(law.exchanges, np.uint64).astype(np.int64)


def _challenger(record: PageRecord, index: Mapping[str, int]) -> int:
    return NOBODY if record.challenger is None else index[record.row[record.challenger]]


def _filled(numbers: list[int], width: int) -> list[int]:
    return numbers + [0] * (width - len(numbers))


@functools.lru_cache(maxsize=1024)
def _filled_bytes(places: bytes, width: int) -> tuple[int, ...]:
    return (*places, *(0,) * (width - len(places)))
