"""Many packed page records at once, as columns. A replay reads a million, and a closing hundreds at a time.

``RecordColumns`` says of every record what ``page_record.unpacked`` says of one, and ``check`` refuses the same ones.
Records whose parts have the same lengths (their *layout*) are looked at together, as rows of one table of bytes.
"""

import functools
import itertools
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.store.page_record import (
    BASE,
    CHECKSUM_SIZE,
    DRAWN,
    FORMAT,
    HEAD,
    ID_SIZE,
    LEADER,
    NOBODY,
    SOURCE,
    SOURCE_SIZE,
    TARGET_BIT,
    VISITOR,
    WHOLE,
    DamagedRecordError,
    unpacked,
)  # fmt: skip

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Selection = slice | Numbers | Flags

_HEAD = np.dtype(list(HEAD))

TENANT, CONTEXT, POLICY, FORM, _REQUEST = range(5)
"""The texts before the names of items."""
_TEXTS = 5


class Laws(NamedTuple):
    """The laws of many pages by place, with zeros behind the places of a page."""

    start: NDArray[np.uint8]
    end: NDArray[np.uint8]
    weight: NDArray[np.float64]
    exchanges: NDArray[np.uint64]


class _Layout(NamedTuple):
    """Records of one layout: which they are, and what stands between their heads and their texts."""

    numbers: Numbers
    flags: int
    places: int
    k: int
    body: NDArray[np.uint8]

    @property
    def _law_at(self) -> int:
        return SOURCE_SIZE if self.flags & SOURCE else 0

    @property
    def source(self) -> NDArray[np.uint64]:
        return np.ascontiguousarray(self.body[:, :SOURCE_SIZE]).view(np.uint64)[:, 0]

    @property
    def law(self) -> Laws:
        at, places, size = self._law_at, self.places, len(self.numbers)
        start, end = self.body[:, at : at + places], self.body[:, at + places : at + 2 * places]
        draw = np.zeros((size, 16 * places), np.uint8)
        if self.flags & DRAWN:
            draw[:] = self.body[:, at + 2 * places : at + 18 * places]
        return Laws(start, end, draw[:, : 8 * places].view(np.float64), draw[:, 8 * places :].view(np.uint64))

    @property
    def base(self) -> NDArray[np.uint8]:
        """By item of production's page: its place; nothing when the record does not name that page."""
        return self.body[:, self.body.shape[1] - self.k :] if self.flags & BASE else self.body[:, :0]


class _Texts(NamedTuple):
    """The texts of records, each different one once."""

    different: list[str]
    coded: Numbers  # all texts, one record after the other: which of the different ones
    begin: Numbers  # by record: where its texts begin among all
    sizes: Numbers  # by record: how many it has


class RecordColumns:
    """Packed records as columns. They are taken for records as they were written until ``check`` was called."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self.records = records
        _check_sizes(records, _HEAD.itemsize + CHECKSUM_SIZE)
        heads = b"".join([record[: _HEAD.itemsize] for record in records])
        self.heads: NDArray[Any] = np.frombuffer(heads, _HEAD) if records else np.zeros(0, _HEAD)
        if (self.heads["format"] != FORMAT).any():
            unpacked(records[int(np.argmax(self.heads["format"] != FORMAT))])  # raises

    def __len__(self) -> int:
        return len(self.records)

    def select(self, which: Selection) -> "RecordColumns":
        """Some of the records."""
        numbers = np.arange(len(self))[which]
        if len(numbers) == len(self):
            return self
        selected = RecordColumns([self.records[number] for number in numbers.tolist()])
        if "_texts" in self.__dict__:  # they were read already
            texts = self._texts
            selected._texts = texts._replace(begin=texts.begin[numbers], sizes=texts.sizes[numbers])
        return selected

    # --- facts ---

    def column(self, name: str) -> Numbers:
        """A number of the head, by record."""
        return self.heads[name].astype(np.int64)

    @property
    def drawn(self) -> Flags:
        """Pages that were drawn from weights."""
        return np.asarray(self.heads["flags"] & DRAWN != 0)

    @property
    def has_visitor(self) -> Flags:
        """Pages of known visitors."""
        return np.asarray(self.heads["flags"] & VISITOR != 0)

    @property
    def has_source(self) -> Flags:
        """Pages whose source was named."""
        return np.asarray(self.heads["flags"] & SOURCE != 0)

    @property
    def is_leader(self) -> Flags:
        """Pages on which the policy tried nothing."""
        return np.asarray(self.heads["flags"] & LEADER != 0)

    @property
    def visitor(self) -> NDArray[np.uint64]:
        """The visitors, as words."""
        return np.ascontiguousarray(self.heads["visitor"]).view(np.uint64)

    @property
    def source(self) -> NDArray[np.uint64]:
        """The sources, as words."""
        found = np.zeros(len(self), np.uint64)
        for layout in self._layouts:
            if layout.flags & SOURCE:
                found[layout.numbers] = layout.source
        return found

    @property
    def last_of_ids(self) -> Numbers:
        """The last four bytes of every page's id, as a number: they are random."""
        last = np.ascontiguousarray(self.heads["impression"]).view(np.uint8).reshape(-1, ID_SIZE)[:, -4:]
        return np.ascontiguousarray(last).view(">u4")[:, 0].astype(np.int64)

    @property
    def differs_from_base(self) -> Flags:
        """Pages that name production's page and chose another."""
        found = np.zeros(len(self), np.bool_)
        for layout in self._layouts:
            found[layout.numbers] = (layout.base != np.arange(layout.base.shape[1])).any(axis=1)
        return found

    def laws(self, width: int) -> Laws:
        """The laws, with room for so many places."""
        shape = (len(self), width)
        laws = Laws(np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), np.zeros(shape), np.zeros(shape, np.uint64))
        for layout in self._layouts:
            columns: Sequence[NDArray[Any]] = laws
            for column, part in zip(columns, layout.law, strict=True):
                column[layout.numbers, : layout.places] = part
        return laws

    @functools.cached_property
    def _layouts(self) -> list[_Layout]:
        flags = self.column("flags") & (SOURCE | DRAWN | BASE)
        keys = flags << 16 | self.column("places") << 8 | self.column("k")
        return [self._layout(int(key), np.flatnonzero(keys == key)) for key in np.unique(keys)]

    def _layout(self, key: int, numbers: Numbers) -> _Layout:
        flags, places, k = key >> 16, key >> 8 & 0xFF, key & 0xFF
        begin = _HEAD.itemsize
        end = (
            begin + SOURCE_SIZE * bool(flags & SOURCE) + (18 if flags & DRAWN else 2) * places + k * bool(flags & BASE)
        )
        mine = self.records if len(numbers) == len(self) else [self.records[number] for number in numbers.tolist()]
        _check_sizes(mine, end + CHECKSUM_SIZE)
        body = np.frombuffer(b"".join([record[begin:end] for record in mine]), np.uint8).reshape(
            len(numbers), end - begin
        )
        return _Layout(numbers, flags, places, k, body)

    # --- texts ---

    @functools.cached_property
    def _texts(self) -> _Texts:
        begin = np.zeros(len(self), np.int64)
        for layout in self._layouts:
            begin[layout.numbers] = _HEAD.itemsize + layout.body.shape[1]
        texts = [record[at:-CHECKSUM_SIZE] for record, at in zip(self.records, begin.tolist(), strict=True)]
        sizes = np.array([text.count(0) + 1 for text in texts], np.int64)
        codes: dict[str, int] = defaultdict(itertools.count().__next__)
        words = b"\0".join(texts).decode("utf-8").split("\0")
        coded = np.fromiter(map(codes.__getitem__, words), np.int64, len(words))
        return _Texts(list(codes), coded, np.cumsum(sizes) - sizes, sizes)

    def text(self, which: int) -> list[str]:
        """By record: its TENANT, CONTEXT, POLICY or FORM."""
        texts = self._texts
        return [texts.different[code] for code in texts.coded[texts.begin + which].tolist()]

    def has_text(self, which: int, wanted: str) -> Flags:
        """Records whose TENANT, CONTEXT, POLICY or FORM is the wanted one."""
        texts = self._texts
        if wanted not in texts.different:
            return np.zeros(len(self), np.bool_)
        return np.asarray(texts.coded[texts.begin + which] == texts.different.index(wanted))

    def rows(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and place: the number of the item in ``index``, -1 without one, 0 behind the places of a page."""
        return self._numbered(index, np.arange(width), self.column("places"))

    def shown(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item that was shown, as in ``rows``."""
        names, behind = self._counts
        return self._numbered(index, np.where(names > behind, behind, 0)[:, None] + np.arange(width), self.column("k"))

    def production(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item on production's page, -1 if the record does not name it."""
        (names, behind), k = self._counts, self.column("k")
        at = behind[:, None] + np.arange(width)  # what was shown instead, unless there is a base
        sizes = np.where(names > behind, k, 0)
        for layout in self._layouts:
            if layout.flags & BASE:
                used = min(width, layout.k)
                at[layout.numbers, :used], sizes[layout.numbers] = layout.base[:, :used], layout.k
        return np.where(np.arange(width) < sizes[:, None], self._numbered(index, at, sizes), -1)

    def _numbered(self, index: Mapping[str, int], at: Numbers, sizes: Numbers) -> Numbers:
        """By record the numbers of the first items of those at some places among its names."""
        texts = self._texts
        known = np.array([index.get(text, -1) for text in texts.different], np.int64)
        used = np.arange(at.shape[-1]) < sizes[:, None]
        codes = texts.coded[np.where(used, texts.begin[:, None] + _TEXTS + at, 0)]
        return np.where(used, known[codes], 0)

    @functools.cached_property
    def _counts(self) -> tuple[Numbers, Numbers]:
        """By record: how many items are named, and how many of them are not those that were shown instead."""
        names, behind = self._texts.sizes - _TEXTS, self.column("places")
        for layout in self._layouts:
            if layout.base.shape[1]:
                behind[layout.numbers] = np.maximum(layout.places, layout.base.max(axis=1).astype(np.int64) + 1)
        return names, behind

    # --- checks ---

    def check_sums(self) -> None:
        """Raise DamagedRecordError if the checksum of one of the records is wrong."""
        sums = list(map(zlib.crc32, self.records))
        if sums.count(WHOLE) != len(sums):
            for record in self.records:
                unpacked(record)  # raises for one of them

    def check(self) -> None:
        """Raise DamagedRecordError if ``unpacked`` would raise it for one of the records."""
        self.check_sums()
        try:
            damaged = ~(self._heads_fit() & self._laws_fit())
        except UnicodeDecodeError:
            damaged = np.ones(len(self), np.bool_)
        for number in np.flatnonzero(damaged).tolist():
            unpacked(self.records[number])
        if damaged.any():
            raise DamagedRecordError("the page record cannot be read")

    def _heads_fit(self) -> Flags:
        """As ``page_record`` has it: names for all places, a page of the right size, a challenger that is there."""
        (names, behind), places, k = self._counts, self.column("places"), self.column("k")
        challenger, share = self.column("challenger"), self.heads["share"]
        size = np.where(names > behind, names - behind == k, places >= k)
        size &= (places == 0) | ((k <= places) & (places < NOBODY))
        return np.asarray(
            (names >= behind)
            & size
            & ((challenger == NOBODY) | (challenger < places))
            & (share >= 0.0)
            & (share <= 1.0)
        )

    def _laws_fit(self) -> Flags:
        found = np.ones(len(self), np.bool_)
        for layout in self._layouts:
            if layout.places:
                found[layout.numbers] = _law_fits(layout)
        return found


def _check_sizes(records: Sequence[bytes], least: int) -> None:
    """Raise DamagedRecordError if a record is too short for what it must hold."""
    if min(map(len, records), default=least) < least:
        unpacked(min(records, key=len))  # raises
        raise DamagedRecordError("a page record is too short")


def _law_fits(layout: _Layout) -> Flags:
    """As ``_groups_fit`` and ``_draw_fits`` of page_record.py."""
    law, places = layout.law, np.arange(layout.places)
    fits = ((law.start <= places) & (law.end > places) & (law.end <= layout.places)).all(axis=1)
    if layout.flags & DRAWN:
        fits &= np.isfinite(law.weight.sum(axis=1)) & (law.weight >= 0.0).all(axis=1)
        fits &= _exchanges_fit(law.exchanges, layout.places)
    return np.asarray(fits)


def _exchanges_fit(exchanges: NDArray[np.uint64], places: int) -> Flags:
    allowed, target = (1 << min(places, 64)) - 1, np.uint64(1 << TARGET_BIT)
    if places > TARGET_BIT:
        return np.asarray((exchanges & ~np.uint64(allowed) == 0).all(axis=1))
    named = (exchanges & ~(np.uint64(allowed) | target) == 0).all(axis=1)
    marked = (exchanges & target != 0).sum(axis=1)
    return np.asarray(named & ((marked == 0) | (marked == 2)))
