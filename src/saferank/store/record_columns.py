"""Many packed page records at once, as columns: one compiled pass reads and checks them.

A replay reads a million records and a closing hundreds at a time. What is wrong with a record is found here, for one
record (``unpacked``) as for many: places, groups, exchanges and names are what compiled code relies on.
"""

import secrets
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.store.page_record import (
    BASE,
    CHECKSUM_SIZE,
    DRAWN,
    FORMAT,
    HEAD,
    ID_SIZE,
    LEADER,
    NOBODY,
    PINNED,
    PINS_SIZE,
    SOURCE,
    SOURCE_SIZE,
    TARGET_BIT,
    VISITOR,
    WHOLE,
    DamagedRecordError,
    PageRecord,
    read_record,
)  # fmt: skip

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Selection = slice | Numbers | Flags
Bytes = NDArray[np.uint8]

_HEAD = np.dtype(list(HEAD))
_SIZE = _HEAD.itemsize
_FLAGS, _K, _PLACES, _CHALLENGER = (int(_HEAD.fields[name][1]) for name in ("flags", "k", "places", "challenger"))  # type: ignore[index]

TENANT, CONTEXT, POLICY, _REQUEST = range(4)
"""The texts before the names of items."""
_TEXTS = 4

_SEED = secrets.randbits(64)
"""Texts are found again by a hash that only this process knows: names that share one cannot be made up."""
_PRIME = 0x100000001B3

_OTHER_FORMAT, _NOT_AS_WRITTEN, _NOT_TEXT, _OTHER_PLACES = 1, 2, 3, 4
_FAULTS = {
    _OTHER_FORMAT: "a page record of the unknown format {format}",
    _NOT_AS_WRITTEN: "the checksum of a page record is wrong: it is not as it was written",
    _NOT_TEXT: "the page record cannot be read: a name is not UTF-8",
    _OTHER_PLACES: "a page record names places that it does not have",
}


class Laws(NamedTuple):
    """The laws of many pages by place, with zeros behind the places of a page."""

    start: Bytes
    end: Bytes
    weight: NDArray[np.float64]
    exchanges: NDArray[np.uint64]


class _Columns(NamedTuple):
    """Room for what stands behind the heads, a row for each record."""

    source: NDArray[np.uint64]
    pins: Bytes  # [record, byte] bits of positions
    start: Bytes  # [record, place]
    end: Bytes
    weight: NDArray[np.uint64]  # as bits
    exchanges: NDArray[np.uint64]
    base: Bytes  # [record, position] the place of production's item
    behind: Numbers  # names that are not those of what was shown instead
    begin: Numbers  # the number of its first text among those of all records
    sizes: Numbers  # how many texts it has
    fault: Bytes
    coded: NDArray[np.int32]  # by text: which of the different ones it is
    at: Numbers  # by different text: where it stands first ...
    length: Numbers
    hash: NDArray[np.uint64]
    slots: NDArray[np.int32]  # by hash: 1 + the number of a different text


@kernel
def _word(data: Any, at: int) -> Any:
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return word


@kernel
def _code(data: Any, begin: int, end: int, hashed: Any, known: int, out: Any) -> int:
    """The number of a text among the ``known`` different ones; ``known`` when it is new, and it is noted then."""
    mask = np.uint64(len(out.slots) - 1)
    slot = (hashed ^ (hashed >> np.uint64(32))) & mask
    while out.slots[slot]:
        code = out.slots[slot] - 1
        if out.hash[code] == hashed and out.length[code] == end - begin:
            place = 0
            while place < end - begin and data[begin + place] == data[out.at[code] + place]:
                place += 1
            if place == end - begin:
                return int(code)
        slot = (slot + np.uint64(1)) & mask
    out.slots[slot] = known + 1
    out.at[known], out.length[known], out.hash[known] = begin, end - begin, hashed
    return known


@kernel
def _read_laws(data: Any, at: int, number: int, places: int, drawn: bool, out: Any) -> bool:
    """Groups, and of a page that was drawn its weights and exchanges; True when they name places that there are."""
    fits, everything, marked = True, np.uint64(0), 0
    for place in range(places):
        start, end = data[at + place], data[at + places + place]
        out.start[number, place], out.end[number, place] = start, end
        fits &= start <= place < end <= places
    if drawn:
        weights, exchanges = at + 2 * places, at + 10 * places
        for place in range(places):
            exchange = _word(data, exchanges + 8 * place)
            out.weight[number, place] = _word(data, weights + 8 * place)
            out.exchanges[number, place] = exchange
            everything |= exchange
            marked += int(exchange >> np.uint64(TARGET_BIT))
    if places <= TARGET_BIT:  # a page that renews a certificate marks the two places of its target
        target = everything >> np.uint64(TARGET_BIT) & np.uint64(1)
        fits &= marked == 2 * int(target)
        everything &= ~(np.uint64(1) << np.uint64(TARGET_BIT))
    return fits and (places >= 64 or everything >> np.uint64(places) == 0)


@kernel
def _room(heads: Any, number: int) -> int:
    """How many bytes stand between the head of a record and its texts."""
    flags, places = heads[number, _FLAGS], int(heads[number, _PLACES])
    room = 18 * places if flags & DRAWN else 2 * places
    room += SOURCE_SIZE if flags & SOURCE else 0
    room += PINS_SIZE if flags & PINNED else 0
    return room + (int(heads[number, _K]) if flags & BASE else 0)


@kernel
def _read_pins(data: Any, at: int, number: int, k: int, out: Any) -> int:
    """How many positions are pinned; k, which is too many, when they are not those of a page."""
    pinned = 0
    for byte in range(PINS_SIZE):
        out.pins[number, byte] = data[at + byte]
        for bit in range(8):
            if data[at + byte] >> bit & 1:
                pinned = pinned + 1 if 8 * byte + bit < k else k
    return min(pinned, k)


@kernel
def _read_heads(data: Any, ends: Any, heads: Any, fault: Any) -> int:
    """Copy the heads of records that are long enough and of this format, note a fault of others; how many texts."""
    begin, texts = 0, 0
    for number in range(len(ends)):
        if ends[number] - begin < _SIZE + CHECKSUM_SIZE or data[begin] != FORMAT:
            fault[number] = _OTHER_FORMAT
        else:
            for place in range(_SIZE):
                heads[number, place] = data[begin + place]
            texts += 1
            for place in range(begin + _SIZE + _room(heads, number), ends[number] - CHECKSUM_SIZE):
                texts += int(data[place] == 0)
        begin = ends[number]
    return texts


@kernel
def _read_records(data: Any, ends: Any, heads: Any, seed: Any, out: Any) -> int:
    """Fill ``out``; how many different texts there are."""
    begin, known, texts = 0, 0, 0
    for number in range(len(ends)):
        end = ends[number] - CHECKSUM_SIZE
        at, begin = begin + _SIZE, ends[number]
        out.begin[number] = texts
        if out.fault[number]:
            continue
        flags, k, places = heads[number, _FLAGS], int(heads[number, _K]), int(heads[number, _PLACES])
        drawn = flags & DRAWN != 0
        if at + _room(heads, number) > end:
            out.fault[number] = _OTHER_PLACES
            continue
        if flags & SOURCE:
            out.source[number] = _word(data, at)
            at += SOURCE_SIZE
        positions = k
        if flags & PINNED:
            positions -= _read_pins(data, at, number, k, out)
            at += PINS_SIZE
        fits = _read_laws(data, at, number, places, drawn, out) and (positions > 0 or k == 0)
        at += (18 if drawn else 2) * places
        behind = places
        if flags & BASE:
            for place in range(k):
                out.base[number, place] = data[at + place]
                behind = max(behind, 1 + int(data[at + place]))
                is_pinned = out.pins[number, place >> 3] >> (place & 7) & 1
                fits &= is_pinned == 0 or data[at + place] >= places
            at += k
        out.behind[number] = behind
        start, hashed = at, seed
        for place in range(at, end + 1):
            if place == end or data[place] == 0:
                code = _code(data, start, place, hashed, known, out)
                known += int(code == known)
                out.coded[texts] = code
                texts += 1
                start, hashed = place + 1, seed
            else:
                hashed = (hashed ^ np.uint64(data[place])) * np.uint64(_PRIME)
        out.sizes[number] = texts - out.begin[number]
        names, challenger = out.sizes[number] - _TEXTS, int(heads[number, _CHALLENGER])
        fits &= names >= behind and (names - behind == k if names > behind else places >= positions)
        fits &= places == 0 or (positions <= places < NOBODY)
        fits &= positions == k or flags & BASE != 0 or names > behind  # or it would not say what is pinned
        fits &= challenger == NOBODY or challenger < places
        if not fits:
            out.fault[number] = _OTHER_PLACES
    return known


class _Read(NamedTuple):
    """Records that were read together."""

    records: Sequence[bytes]
    heads: NDArray[Any]
    columns: _Columns
    texts: list[str]  # the different ones; empty for one that is not UTF-8


def _read(records: Sequence[bytes]) -> _Read:
    data, count = b"".join(records), len(records)
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, count))
    heads, fault, words = np.zeros((count, _SIZE), np.uint8), np.zeros(count, np.uint8), np.frombuffer(data, np.uint8)
    texts = _read_heads(words, ends, heads, fault)
    as_written = np.fromiter(map(zlib.crc32, records), np.int64, count) == WHOLE
    fault[(fault == 0) & ~as_written] = _NOT_AS_WRITTEN
    named = heads.view(_HEAD)[:, 0]
    width, k = (int(named[name].max(initial=0)) for name in ("places", "k"))
    columns = _room_for(count, width, k, texts, fault)
    known = _read_records(words, ends, heads, np.uint64(_SEED), columns)
    weight, share = columns.weight.view(np.float64), named["share"]
    fits = np.isfinite(weight.sum(axis=1)) & (weight >= 0.0).all(axis=1) & (share >= 0.0) & (share <= 1.0)
    fault[(fault == 0) & ~fits] = _OTHER_PLACES
    spans = zip(columns.at[:known].tolist(), columns.length[:known].tolist(), strict=True)
    different = [_text(data[at : at + length]) for at, length in spans]
    for code in [code for code, text in enumerate(different) if text is None]:
        at = np.flatnonzero(columns.coded[: columns.sizes.sum()] == code)
        fault[np.searchsorted(columns.begin, at, "right") - 1] = _NOT_TEXT
    return _Read(records, named, columns, [text or "" for text in different])


def _room_for(count: int, width: int, k: int, texts: int, fault: Bytes) -> _Columns:
    by_place = (count, width)
    return _Columns(
        source=np.zeros(count, np.uint64),
        pins=np.zeros((count, PINS_SIZE), np.uint8),
        start=np.zeros(by_place, np.uint8),
        end=np.zeros(by_place, np.uint8),
        weight=np.zeros(by_place, np.uint64),
        exchanges=np.zeros(by_place, np.uint64),
        base=np.zeros((count, k), np.uint8),
        behind=np.zeros(count, np.int64),
        begin=np.zeros(count, np.int64),
        sizes=np.zeros(count, np.int64),
        fault=fault,
        coded=np.zeros(texts, np.int32),
        at=np.zeros(texts, np.int64),
        length=np.zeros(texts, np.int64),
        hash=np.zeros(texts, np.uint64),
        slots=np.zeros(1 << (2 * texts).bit_length(), np.int32),
    )


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


class RecordColumns:
    """Packed records as columns, all of those that were read together or some. Call ``check`` before any use."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self._read = _read(records)
        self._at: Numbers = np.arange(len(records))

    def __len__(self) -> int:
        return len(self._at)

    def select(self, which: Selection) -> "RecordColumns":
        """Some of the records."""
        selected = RecordColumns.__new__(RecordColumns)
        selected._read, selected._at = self._read, self._at[which]
        return selected

    def record(self, number: int) -> PageRecord:
        """One of them."""
        return read_record(self._read.records[self._at[number]])

    # --- facts ---

    def field(self, name: str) -> NDArray[Any]:
        """A field of the head, by record."""
        return self._read.heads[name][self._at]

    def column(self, name: str) -> Numbers:
        """A number of the head, by record."""
        return self.field(name).astype(np.int64)

    @property
    def drawn(self) -> Flags:
        """Pages that were drawn from weights."""
        return self._has(DRAWN)

    @property
    def has_visitor(self) -> Flags:
        """Pages of known visitors."""
        return self._has(VISITOR)

    @property
    def has_source(self) -> Flags:
        """Pages whose source was named."""
        return self._has(SOURCE)

    def _has(self, flag: int) -> Flags:
        return np.asarray(self.field("flags") & flag != 0)

    @property
    def is_leader(self) -> Flags:
        """Pages on which the policy tried nothing."""
        return self._has(LEADER)

    @property
    def visitor(self) -> NDArray[np.uint64]:
        """The visitors, as words."""
        return self.field("visitor").view(np.uint64)

    @property
    def source(self) -> NDArray[np.uint64]:
        """The sources, as words."""
        return self._read.columns.source[self._at]

    def of_visitor(self, visitor: bytes, source: bytes = b"") -> Numbers:
        """Which records are of a visitor or of a source; empty: of none."""
        found = np.zeros(len(self), np.bool_)
        if visitor:
            found |= self.has_visitor & (self.visitor == np.frombuffer(visitor, np.uint64))
        if source:
            found |= self.has_source & (self.source == np.frombuffer(source, np.uint64))
        return np.flatnonzero(found)

    @property
    def last_of_ids(self) -> Numbers:
        """The last four bytes of every page's id, as a number: they are random."""
        last = self.field("impression").view(np.uint8).reshape(-1, ID_SIZE)[:, -4:]
        return np.ascontiguousarray(last).view(">u4")[:, 0].astype(np.int64)

    @property
    def differs_from_base(self) -> Flags:
        """Pages that name production's page and chose another."""
        base = self._read.columns.base[self._at]
        moved = (base != self._chosen_at(base.shape[1])) & (np.arange(base.shape[1]) < self.column("k")[:, None])
        return np.asarray(self._has(BASE) & moved.any(axis=1))

    @property
    def pins(self) -> NDArray[np.void]:
        """The bits of pinned positions, as bytes."""
        return self._read.columns.pins[self._at].view(f"V{PINS_SIZE}")[:, 0]

    def is_pinned(self, width: int) -> Flags | None:
        """By record and position; None when there is no pin at all, which is usual."""
        if not self._has(PINNED).any():
            return None
        pins = self._read.columns.pins[self._at]
        return np.unpackbits(pins, axis=1, count=width, bitorder="little").astype(np.bool_)

    @property
    def positions(self) -> Numbers:
        """How many items of the row are for the page."""
        pinned = self.is_pinned(8 * PINS_SIZE)
        return self.column("k") if pinned is None else np.asarray(self.column("k") - pinned.sum(axis=1))

    def _chosen_at(self, width: int) -> Numbers:
        """By record and position: where the item that the policy chose stands among the names."""
        at, pinned = np.broadcast_to(np.arange(width), (len(self), width)), self.is_pinned(width)
        if pinned is None:
            return at
        return np.where(pinned, _with_width(self._read.columns.base, width)[self._at], at - pinned.cumsum(axis=1))

    def laws(self, width: int) -> Laws:
        """The laws, with room for a number of places, as many as the pages have at least."""
        read = self._read.columns
        by_place = (read.start, read.end, read.weight, read.exchanges)
        start, end, weight, exchanges = (_with_width(column, width)[self._at] for column in by_place)
        return Laws(start, end, weight.view(np.float64), exchanges)

    # --- texts ---

    def has_text(self, which: int, wanted: str) -> Flags:
        """Records whose TENANT, CONTEXT or POLICY is the wanted one."""
        texts = self._read.texts
        return np.asarray(self._codes(which) == (texts.index(wanted) if wanted in texts else -1))

    def _codes(self, which: int) -> NDArray[np.int32]:
        columns = self._read.columns
        return columns.coded[columns.begin[self._at] + which]

    def rows(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and place: the number of the item in ``index``, -1 without one, 0 behind the places of a page."""
        return self._numbered(index, np.arange(width), self.column("places"))

    def shown(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item that was shown, as in ``rows``."""
        names, behind = self._counts
        instead = behind[:, None] + np.arange(width)
        at = np.where((names > behind)[:, None], instead, self._chosen_at(width))
        return self._numbered(index, at, self.column("k"))

    def production(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item on production's page, -1 if the record does not name it."""
        (names, behind), k, based = self._counts, self.column("k"), self._has(BASE)
        base = _with_width(self._read.columns.base, width)[self._at]
        at = np.where(based[:, None], base, behind[:, None] + np.arange(width))  # or what was shown instead
        sizes = np.where(based | (names > behind), k, 0)
        return np.where(np.arange(width) < sizes[:, None], self._numbered(index, at, sizes), -1)

    def _numbered(self, index: Mapping[str, int], at: Numbers, sizes: Numbers) -> Numbers:
        """By record the numbers of the first items of those at some places among its names."""
        columns = self._read.columns
        known = np.array([index.get(text, -1) for text in self._read.texts], np.int64)
        used = np.arange(at.shape[-1]) < sizes[:, None]
        codes = columns.coded[np.where(used, columns.begin[self._at][:, None] + _TEXTS + at, 0)]
        return np.where(used, known[codes], 0)

    @property
    def _counts(self) -> tuple[Numbers, Numbers]:
        """By record: how many items are named, and how many of them are not those that were shown instead."""
        return self._read.columns.sizes[self._at] - _TEXTS, self._read.columns.behind[self._at]

    # --- checks ---

    def faults(self) -> dict[int, str]:
        """What is wrong, by number of the record; nothing when all are as they were written."""
        found, said = self._read.columns.fault[self._at], {}
        for number in np.flatnonzero(found).tolist():
            record = self._read.records[self._at[number]]
            said[number] = _FAULTS[int(found[number])].format(format=record[0] if record else None)
        return said

    def check(self) -> None:
        """Raise DamagedRecordError if one of the records is not as it was written."""
        for fault in self.faults().values():
            raise DamagedRecordError(fault)


def _with_width(table: NDArray[Any], width: int) -> NDArray[Any]:
    """The first columns of a table, with zeros where it has fewer."""
    missing = width - table.shape[1]
    return table[:, :width] if missing <= 0 else np.pad(table, ((0, 0), (0, missing)))


def unpacked(data: bytes) -> PageRecord:
    """The record that was packed; DamagedRecordError for anything else."""
    columns = RecordColumns([data])
    columns.check()
    return columns.record(0)
