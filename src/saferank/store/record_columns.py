"""Many packed page records at once, as columns: one compiled pass reads and checks them.

A replay reads a million records and a closing hundreds at a time. What is wrong with a record is found here, for one
record (``unpacked``) as for many: places, groups, exchanges and names are what compiled code relies on.
"""

import copy
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.store.contract import PageRow
from saferank.store.page_record import (
    BASE,
    CHECKSUM_SIZE,
    DRAWN,
    FORMAT,
    HEAD,
    ID_SIZE,
    NO_CHALLENGER,
    PINNED,
    PINS_SIZE,
    SOURCE,
    SOURCE_SIZE,
    TARGET_BIT,
    TIME_BYTES,
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
_PLACE_OF: dict[str, int] = {name: int(_HEAD.fields[name][1]) for name, _ in HEAD}  # type: ignore[index]

_OF_HEAD = (
    "arm", "flags", "knowledge", "round", "window_ms", "k", "places", "challenger", "server", "number", "share", "used",
    "visitor",
)  # fmt: skip
(
    ARM, FLAGS, KNOWLEDGE, ROUND, WINDOW_MS, K, PLACES, CHALLENGER, SERVER, NUMBER, SHARE, USED, VISITOR_KEY,
    ISSUED_AT, LAST_OF_ID, SOURCE_KEY, PINNED_PLACES,
) = range(len(_OF_HEAD) + 4)  # fmt: skip
"""The numbers of a record: those of its head, then what follows from its id, its source and its pins.

A share is the bits of a float; a server, a visitor and a source are words; the last bytes of an id are random.
"""
_SPANS = np.array([[_PLACE_OF[name], _HEAD[name].itemsize] for name in _OF_HEAD], np.int64)
_ID = _PLACE_OF["impression"]

TENANT, CONTEXT, POLICY, _REQUEST = range(4)
"""The texts before the names of items."""
TEXTS = 4

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


class Columns(NamedTuple):
    """What records say, a row for each."""

    heads: Bytes  # [record, byte]
    numbers: Numbers  # [record, ARM and so on]
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
    codes: NDArray[np.int32]  # by text: which of the different ones it is
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
def _room(row: Any) -> int:
    """How many bytes stand between the head of a record and its texts."""
    flags, places = row[FLAGS], row[PLACES]
    room = 18 * places if flags & DRAWN else 2 * places
    room += SOURCE_SIZE if flags & SOURCE else 0
    room += PINS_SIZE if flags & PINNED else 0
    return int(room + (row[K] if flags & BASE else 0))


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
def _read_head(head: Any, numbers: Any) -> None:
    for column in range(len(_SPANS)):
        value = np.uint64(0)
        for byte in range(_SPANS[column, 1]):
            value |= np.uint64(head[_SPANS[column, 0] + byte]) << np.uint64(8 * byte)
        numbers[column] = np.int64(value)
    for byte in range(TIME_BYTES):
        numbers[ISSUED_AT] = numbers[ISSUED_AT] << 8 | np.int64(head[_ID + byte])
    for byte in range(ID_SIZE - 4, ID_SIZE):
        numbers[LAST_OF_ID] = numbers[LAST_OF_ID] << 8 | np.int64(head[_ID + byte])


@kernel
def _read_heads(data: Any, ends: Any, heads: Any, numbers: Any, fault: Any, most: Any) -> None:
    """The heads of records that are long enough and of this format; the others are marked.

    ``most`` are texts altogether, places and positions: how much room the rest needs.
    """
    begin = 0
    for number in range(len(ends)):
        if ends[number] - begin < _SIZE + CHECKSUM_SIZE or data[begin] != FORMAT:
            fault[number] = _OTHER_FORMAT
        else:
            row = numbers[number]
            for byte in range(_SIZE):
                heads[number, byte] = data[begin + byte]
            _read_head(heads[number], row)
            most[1], most[2] = max(most[1], row[PLACES]), max(most[2], row[K])
            most[0] += 1
            for place in range(begin + _SIZE + _room(row), ends[number] - CHECKSUM_SIZE):
                most[0] += int(data[place] == 0)
        begin = ends[number]


@kernel
def _read_records(data: Any, ends: Any, seed: Any, out: Any) -> int:
    """Fill ``out``; how many different texts there are."""
    begin, known, texts = 0, 0, 0
    for number in range(len(ends)):
        end = ends[number] - CHECKSUM_SIZE
        at, begin = begin + _SIZE, ends[number]
        out.begin[number] = texts
        if out.fault[number]:
            continue
        row = out.numbers[number]
        flags, k, places = row[FLAGS], row[K], row[PLACES]
        drawn = flags & DRAWN != 0
        if at + _room(row) > end:
            out.fault[number] = _OTHER_PLACES
            continue
        if flags & SOURCE:
            row[SOURCE_KEY] = np.int64(_word(data, at))
            at += SOURCE_SIZE
        if flags & PINNED:
            row[PINNED_PLACES] = _read_pins(data, at, number, k, out)
            at += PINS_SIZE
        positions = k - row[PINNED_PLACES]
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
                out.codes[texts] = code
                texts += 1
                start, hashed = place + 1, seed
            else:
                hashed = (hashed ^ np.uint64(data[place])) * np.uint64(_PRIME)
        out.sizes[number] = texts - out.begin[number]
        names, challenger = out.sizes[number] - TEXTS, row[CHALLENGER]
        fits &= names >= behind and (names - behind == k if names > behind else places >= positions)
        fits &= places == 0 or (positions <= places < NO_CHALLENGER)
        fits &= positions == k or flags & BASE != 0 or names > behind  # or it would not say what is pinned
        fits &= challenger == NO_CHALLENGER or challenger < places
        if not fits:
            out.fault[number] = _OTHER_PLACES
    return known


def _read(records: Sequence[bytes]) -> tuple[Columns, list[str]]:
    """Records that are read together as columns, and their different texts; one that is not UTF-8 is empty."""
    data, count = b"".join(records), len(records)
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, count))
    words, most = np.frombuffer(data, np.uint8), np.zeros(3, np.int64)
    heads, numbers = np.zeros((count, _SIZE), np.uint8), np.zeros((count, len(_OF_HEAD) + 4), np.int64)
    fault = np.zeros(count, np.uint8)
    _read_heads(words, ends, heads, numbers, fault, most)
    changed = np.fromiter(map(zlib.crc32, records), np.uint32, count) != WHOLE
    fault[changed & (fault == 0)] = _NOT_AS_WRITTEN
    columns = _room_for(heads, numbers, fault, *most.tolist())
    known = _read_records(words, ends, np.uint64(_SEED), columns)
    weight, share = columns.weight.view(np.float64), numbers[:, SHARE].view(np.float64)
    fits = np.isfinite(weight.sum(axis=1)) & (weight >= 0.0).all(axis=1) & (share >= 0.0) & (share <= 1.0)
    if not fits.all():
        fault[(fault == 0) & ~fits] = _OTHER_PLACES
    texts = list[str]()
    for code, (at, length) in enumerate(zip(columns.at[:known].tolist(), columns.length[:known].tolist(), strict=True)):
        try:
            texts.append(data[at : at + length].decode("utf-8"))
        except UnicodeDecodeError:
            texts.append("")
            its_own = np.flatnonzero(columns.codes[: columns.sizes.sum()] == code)
            fault[np.searchsorted(columns.begin, its_own, "right") - 1] = _NOT_TEXT
    return columns, texts


def _room_for(heads: Bytes, numbers: Numbers, fault: Bytes, texts: int, width: int, k: int) -> Columns:
    count = len(numbers)
    start, end = np.zeros((2, count, width), np.uint8)
    weight, exchanges = np.zeros((2, count, width), np.uint64)
    behind, begin, sizes = np.zeros((3, count), np.int64)
    at, length = np.zeros((2, texts), np.int64)
    return Columns(
        heads=heads,
        numbers=numbers,
        pins=np.zeros((count, PINS_SIZE), np.uint8),
        start=start,
        end=end,
        weight=weight,
        exchanges=exchanges,
        base=np.zeros((count, k), np.uint8),
        behind=behind,
        begin=begin,
        sizes=sizes,
        fault=fault,
        codes=np.zeros(texts, np.int32),
        at=at,
        length=length,
        hash=np.zeros(texts, np.uint64),
        slots=np.zeros(1 << (2 * texts).bit_length(), np.int32),
    )


@kernel
def is_pinned(columns: Columns, record: int, position: int) -> bool:
    """True when the item at a position stands where production has it, and is compared with nothing."""
    pinned = columns.numbers[record, PINNED_PLACES]
    return bool(pinned > 0 and columns.pins[record, position >> 3] >> (position & 7) & 1)


@kernel
def _number_shown(columns: Columns, at: Numbers, known: Numbers, found: Numbers) -> None:
    for number in range(len(at)):
        record, chosen = at[number], 0
        texts, behind = columns.begin[record] + TEXTS, columns.behind[record]
        for position in range(min(columns.numbers[record, K], found.shape[1])):
            place = chosen
            if columns.sizes[record] - TEXTS > behind:  # it is not what the policy chose
                place = behind + position
            elif is_pinned(columns, record, position):
                place = int(columns.base[record, position])
            else:
                chosen += 1
            found[number, position] = known[columns.codes[texts + place]]


@kernel
def _number_production(columns: Columns, at: Numbers, known: Numbers, found: Numbers) -> None:
    for number in range(len(at)):
        record = at[number]
        texts, behind, row = columns.begin[record] + TEXTS, columns.behind[record], columns.numbers[record]
        for position in range(min(row[K], found.shape[1])):
            if row[FLAGS] & BASE:
                found[number, position] = known[columns.codes[texts + columns.base[record, position]]]
            elif columns.sizes[record] - TEXTS > behind:  # it was shown instead
                found[number, position] = known[columns.codes[texts + behind + position]]


class RecordColumns:
    """Packed records as columns, all of those that were read together or some. Call ``check`` before any use.

    ``columns`` are of all that were read together, for compiled code, ``texts`` the different texts by their codes;
    ``at`` are the numbers of these records among them.
    """

    def __init__(self, records: Sequence[bytes]) -> None:
        self._records = records
        self.columns, self.texts = _read(records)
        self.at: Numbers = np.arange(len(records))

    def __len__(self) -> int:
        return len(self.at)

    def select(self, which: Selection) -> Self:
        """Some of the records."""
        some = copy.copy(self)
        some.at = self.at[which]
        return some

    def record(self, number: int) -> PageRecord:
        """One of them."""
        return read_record(self._records[self.at[number]])

    # --- facts ---

    def column(self, which: int) -> Numbers:
        """ARM or another number, by record."""
        return np.asarray(self.columns.numbers[self.at, which])

    def field(self, name: str) -> list[bytes]:
        """The bytes of a field of the head, by record."""
        begin, size = _PLACE_OF[name], _HEAD[name].itemsize
        found: list[bytes] = self.columns.heads[self.at, begin : begin + size].view(f"V{size}")[:, 0].tolist()
        return found

    def _has(self, flag: int) -> Flags:
        return np.asarray(self.column(FLAGS) & flag != 0)

    def of_visitor(self, visitor: bytes, source: bytes = b"") -> Numbers:
        """Which records are of a visitor or of a source; empty: of none."""
        found = np.zeros(len(self), np.bool_)
        for key, flag, which in ((visitor, VISITOR, VISITOR_KEY), (source, SOURCE, SOURCE_KEY)):
            if key:
                found |= self._has(flag) & (self.column(which) == int.from_bytes(key, "little", signed=True))
        return np.flatnonzero(found)

    @property
    def pins(self) -> NDArray[np.void]:
        """The bits of pinned positions, as bytes."""
        return self.columns.pins[self.at].view(f"V{PINS_SIZE}")[:, 0]

    # --- texts ---

    def has_text(self, which: int, wanted: str) -> Flags:
        """Records whose TENANT, CONTEXT or POLICY is the wanted one."""
        code = self.texts.index(wanted) if wanted in self.texts else -1
        return np.asarray(self.columns.codes[self.columns.begin[self.at] + which] == code)

    def shown(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item that was shown in ``index``, -1 without one, 0 behind them."""
        return self._numbered(index, np.zeros((len(self), width), np.int64), _number_shown)

    def production(self, index: Mapping[str, int], width: int) -> Numbers:
        """By record and position: the number of the item on production's page, -1 if the record does not name it."""
        return self._numbered(index, np.full((len(self), width), -1), _number_production)

    def _numbered(self, index: Mapping[str, int], found: Numbers, number: Callable[..., None]) -> Numbers:
        known = np.array([index.get(text, -1) for text in self.texts], np.int64)
        number(self.columns, self.at, known, found)
        return found

    # --- checks ---

    def faults(self) -> dict[int, str]:
        """What is wrong, by number of the record; nothing when all are as they were written."""
        found, said = self.columns.fault[self.at], {}
        for number in np.flatnonzero(found).tolist():
            record = self._records[self.at[number]]
            said[number] = _FAULTS[int(found[number])].format(format=record[0] if record else None)
        return said

    def check(self) -> None:
        """Raise DamagedRecordError if one of the records is not as it was written."""
        for fault in self.faults().values():
            raise DamagedRecordError(fault)


CLICK_WORDS = 2
"""Words of 64 bits for the clicks of a page."""


class ClosedPages(RecordColumns):
    """Pages of one context in display order, with their clicks."""

    def __init__(self, rows: Sequence[PageRow]) -> None:
        super().__init__([row.record for row in rows])
        self._rows, self.words = rows, _click_words([row.clicks for row in rows])  # of all that were read together

    def row(self, number: int) -> PageRow:
        """One of the pages."""
        return self._rows[int(self.at[number])]

    @property
    def issued_at(self) -> Numbers:
        """When they were issued."""
        return self.column(ISSUED_AT)

    def clicked_beyond(self) -> list[int]:
        """The numbers of pages with clicks on places that they do not have."""
        found = np.zeros(len(self), np.bool_)
        _note_clicks_beyond(self.columns.numbers, self.words, self.at, found)
        return np.flatnonzero(found).tolist()


@kernel
def is_clicked(words: NDArray[np.uint64], position: int) -> bool:
    """True when a position of a page was clicked."""
    if position >= 64 * len(words):
        return False
    return bool(words[position >> 6] >> np.uint64(position & 63) & np.uint64(1))


@kernel
def clicks_beyond(words: NDArray[np.uint64], k: int) -> bool:
    """True when positions were clicked that a page does not have."""
    found = False
    for position in range(k, 64 * len(words)):
        found |= is_clicked(words, position)
    return found


@kernel
def _note_clicks_beyond(numbers: Numbers, words: NDArray[np.uint64], at: Numbers, found: Flags) -> None:
    for place in range(len(at)):
        found[place] = clicks_beyond(words[at[place]], numbers[at[place], K])


def _click_words(clicks: Sequence[int]) -> NDArray[np.uint64]:
    """By page: the bits of its clicks, in words."""
    size = 8 * CLICK_WORDS
    try:
        packed = b"".join([bits.to_bytes(size, "little") for bits in clicks])
    except OverflowError as problem:
        raise ValueError(f"a page has clicks beyond its {8 * size} places") from problem
    return np.frombuffer(packed, np.uint64).reshape(-1, CLICK_WORDS)


def unpacked(data: bytes) -> PageRecord:
    """The record that was packed; DamagedRecordError for anything else."""
    columns = RecordColumns([data])
    columns.check()
    return columns.record(0)
