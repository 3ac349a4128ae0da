"""The record of a page, from its birth to the archive. There is no second shape of a page.

Packed once, a record is what the log keeps. Sealed (``service/identifiers.py``) it is the token that comes back with
the clicks. Folded it is a lesson, read it is the audit. So it says everything that must be known when the clicks come:
what was shown, what was compared with it, by which law the page was drawn, and from what.

    head | source, if any | pins, if any | start and end of every place's group | weight and exchanges, if drawn |
    places of production's items | names | CRC-32

A pinned item stands where production has it and is compared with nothing: it is on the page and not in the row.

Items are in it by name, so a page whose event was lost in a crash is re-created from its token alone.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

TIME_BYTES, RANDOM_BYTES = 6, 10
ID_SIZE = TIME_BYTES + RANDOM_BYTES
VISITOR_SIZE, SOURCE_SIZE, PINS_SIZE, COINS_SIZE, DIGEST_SIZE, SERVER_SIZE = 8, 8, 16, 32, 16, 8

FORMAT = 4
HEAD = (
    ("format", "u1"), ("arm", "u1"), ("flags", "u1"), ("impression", "V16"), ("knowledge", "<u4"), ("round", "<u8"),
    ("window_ms", "<u4"), ("k", "u1"), ("places", "u1"), ("challenger", "u1"), ("server", "V8"), ("number", "<u4"),
    ("share", "<f8"), ("used", "u1"), ("visitor", "V8"), ("catalogue", "V16"), ("coins", "V32"),
)  # fmt: skip
"""Names and types of the fields that every record begins with, as numpy writes them."""
_CODES = {"u1": "B", "<u4": "I", "<u8": "Q", "<f8": "d"}
_HEAD = struct.Struct("<" + "".join([_CODES.get(kind) or f"{kind[1:]}s" for _, kind in HEAD]))
_CHECKSUM = struct.Struct("<I")
CHECKSUM_SIZE = _CHECKSUM.size
WHOLE = 0x2144DF1C
"""The CRC-32 of any bytes with their own CRC-32 behind them."""
VISITOR, DRAWN, BASE, SOURCE, LEADER, PINNED = 1, 2, 4, 8, 16, 32
OVER = 0xFF
"""Instead of a percentage: the policy's page had more wrong pairs than are allowed, and production's was shown."""
NO_CHALLENGER = 0xFF
TARGET_BIT = 62  # TARGET of policies/safe_draw/draw.py
CATALOGUE_PLACE = _HEAD.size - COINS_SIZE - DIGEST_SIZE + 1
"""Where the digest of the catalogue begins in a packed record, as SQL counts."""


class DamagedRecordError(ValueError):
    """Bytes that are not a page record, or not as they were written."""


class Law(NamedTuple):
    """How the items of a page came to their places, which says what clicks on it prove."""

    start: bytes  # by place: the first place of its group
    end: bytes  # by place: one past the last place of its group
    draw: bytes = b""  # of a page that was drawn item by item: weights and exchanges, 8 bytes each

    @property
    def drawn(self) -> bool:
        """True when the page was drawn from weights."""
        return bool(self.draw)

    @property
    def weight(self) -> tuple[float, ...]:
        """By place, of a page that was drawn."""
        return struct.unpack_from(f"<{len(self.draw) // 16}d", self.draw)

    @property
    def exchanges(self) -> tuple[int, ...]:
        """By place, of a page that was drawn: bits of the places with which the draw could have exchanged it."""
        return struct.unpack_from(f"<{len(self.draw) // 16}Q", self.draw, len(self.draw) // 2)


NO_LAW = Law(b"", b"")


class PageRecord(NamedTuple):
    """One page."""

    impression: bytes  # 16 bytes, of which the first are the time of issue
    tenant: str
    context: str
    policy: str
    arm: int
    knowledge: int  # version of the knowledge that the page was made from
    round: int  # its number for the policy
    window_ms: int
    k: int  # how many items were shown
    visitor: bytes  # hash of the session, or of the request; empty: unknown
    catalogue: bytes  # digest of the call's base ranking and candidates
    coins: bytes
    row: tuple[str, ...]  # by place: what the policy chose for what is not pinned, then those compared only
    instead: tuple[str, ...] = ()  # what was shown, if that is not what the policy chose
    law: Law = NO_LAW  # of the row
    challenger: int | None = None  # place of the item that contends for the last position
    request_id: str | None = None
    base: tuple[str, ...] = ()  # production's page, if it is not what was shown instead
    server: bytes = bytes(SERVER_SIZE)  # the run of a server that issued it ...
    number: int = 0  # ... and which of its pages it was, from 1; 0: it was not to be logged
    share: float = 0.0  # the chance of this page to be put into the holdout when it was issued; 0: it took no part
    source: bytes = b""  # hash of the account or address that the caller named; empty: none
    used: int = 0  # percent of the wrong pairs beyond production's page that are allowed, at most; OVER: more than all
    is_leader: bool = False  # the policy chose what certificates make of production's page, and tried nothing
    pins: int = 0  # bits of the positions whose items are pinned, of a page with a row

    @property
    def production(self) -> tuple[str, ...]:
        """Production's page for the call."""
        return self.base or self.instead

    @property
    def shown(self) -> tuple[str, ...]:
        """The page."""
        return self.instead or self.chosen

    @property
    def positions(self) -> int:
        """How many items of the row are for the page."""
        return self.k - self.pins.bit_count()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The page that the policy chose, pinned items included."""
        return woven(self.row[: self.positions], self.production, self.pins) if self.pins else self.row[: self.k]

    @property
    def hidden(self) -> tuple[str, ...]:
        """What is compared without being shown."""
        return self.row[self.positions :]

    @property
    def issued_at(self) -> int:
        """When it was issued, in milliseconds."""
        return int.from_bytes(self.impression[:TIME_BYTES], "big")

    @property
    def closes_at(self) -> int:
        """Until when its clicks count."""
        return int.from_bytes(self.impression[:TIME_BYTES], "big") + self.window_ms

    def packed(self) -> bytes:
        """The bytes of the record."""
        law, places = self.law, len(self.row)
        flags = VISITOR * bool(self.visitor) | DRAWN * bool(law.draw) | BASE * bool(self.base)
        flags |= SOURCE * bool(self.source) | LEADER * self.is_leader | PINNED * bool(self.pins)
        head = _HEAD.pack(
            FORMAT, self.arm, flags, self.impression, self.knowledge, self.round, self.window_ms, self.k, places,
            NO_CHALLENGER if self.challenger is None else self.challenger, self.server, self.number, self.share,
            self.used, self.visitor, self.catalogue, self.coins,
        )  # fmt: skip
        place = dict(zip(self.row, range(places), strict=True))
        at = bytes([place.setdefault(item, len(place)) for item in self.base])  # those that are not in the row follow
        texts = (self.tenant, self.context, self.policy, self.request_id or "", *place, *self.instead)
        pins = self.pins.to_bytes(PINS_SIZE, "little") if self.pins else b""
        body = b"".join((head, self.source, pins, law.start, law.end, law.draw, at, "\0".join(texts).encode("utf-8")))
        return body + _CHECKSUM.pack(zlib.crc32(body))


def free_positions(k: int, pins: int) -> list[int]:
    """The positions of a page that are not pinned.

    >>> free_positions(4, 0b101)
    [1, 3]
    """
    return [position for position in range(k) if not pins >> position & 1]


_Item = TypeVar("_Item")


def woven(row: tuple[_Item, ...], production: Sequence[_Item], pins: int) -> tuple[_Item, ...]:
    """Items for the free positions in their order, among the pinned ones of production's page.

    >>> woven(("c", "b"), "abc", 0b001)
    ('a', 'c', 'b')
    """
    if not pins:
        return row
    others = iter(row)
    return tuple([item if pins >> position & 1 else next(others) for position, item in enumerate(production)])


def is_whole(data: bytes) -> bool:
    """True when packed bytes have the checksum that they were written with."""
    return zlib.crc32(data) == WHOLE


def read_record(data: bytes) -> PageRecord:
    """The record of bytes that are as ``packed`` wrote them, because they were authenticated or checked.

    DamagedRecordError for another format. Bytes of which nothing is known are read by ``record_columns.unpacked``.
    """
    if len(data) < _HEAD.size + _CHECKSUM.size or data[0] != FORMAT:
        raise DamagedRecordError(f"a page record of the unknown format {data[0] if data else None}")
    (_, arm, flags, impression, knowledge, round_, window_ms, k, places, challenger, server, number, share, used,
     visitor, catalogue, coins) = _HEAD.unpack_from(data)  # fmt: skip
    source = data[_HEAD.size : _HEAD.size + SOURCE_SIZE] if flags & SOURCE else b""
    at = _HEAD.size + len(source)
    pins = data[at : at + PINS_SIZE] if flags & PINNED else b""
    at += len(pins) + 2 * places
    start, end = data[at - 2 * places : at - places], data[at - places : at]
    draw = data[at : at + 16 * places] if flags & DRAWN else b""
    at += len(draw)
    based = data[at : at + k] if flags & BASE else b""
    at += len(based)
    tenant, context, policy, request_id, *names = data[at : -_CHECKSUM.size].decode("utf-8").split("\0")
    behind = max(places, max(based, default=-1) + 1)
    return PageRecord(
        impression=impression, tenant=tenant, context=context, policy=policy, arm=arm, knowledge=knowledge,
        round=round_, window_ms=window_ms, k=k, visitor=visitor if flags & VISITOR else b"", catalogue=catalogue,
        coins=coins, row=tuple(names[:places]), instead=tuple(names[behind:]), law=Law(start, end, draw),
        challenger=None if challenger == NO_CHALLENGER else challenger, request_id=request_id or None,
        base=tuple([names[place] for place in based]), server=server, number=number, share=share,
        source=source, used=used, is_leader=bool(flags & LEADER), pins=int.from_bytes(pins, "little"),
    )  # fmt: skip


def issued_at(impression: bytes) -> int:
    """When the page with this id was issued."""
    return int.from_bytes(impression[:TIME_BYTES], "big")


def first_id(at: int) -> bytes:
    """The smallest id of a page that is issued at this time."""
    return max(0, at).to_bytes(TIME_BYTES, "big") + bytes(RANDOM_BYTES)
