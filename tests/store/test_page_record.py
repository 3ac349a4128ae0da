"""A page record comes back as it was packed, and what is not as it was written is refused before it reaches kernels."""

import random
import struct
import zlib

import pytest

from saferank.policies.safe_draw.draw import TARGET
from saferank.store.page_record import NO_LAW, DamagedRecordError, Law, PageRecord
from saferank.store.record_columns import unpacked
from tests.store.laws import drawn_law

GROUPS, WEIGHTS = (bytes([0, 0, 2, 2]), bytes([1, 2, 3, 4])), (1.0, 0.1, 0.3, 2e-300)
DRAWN = PageRecord(
    impression=bytes(range(16)), tenant="t", context="shelf / ä", policy="safe-draw", arm=0,
    knowledge=3, round=2**41 + 12, window_ms=1_800_000, k=3, visitor=b"12345678", catalogue=b"d" * 16, coins=b"c" * 32,
    row=("a", "ö", "c", "x"), law=drawn_law(*GROUPS, WEIGHTS, (2, 1, 8, 4)),
    challenger=3, request_id="request ü", share=0.1, source=b"87654321",
)  # fmt: skip
PAIRS = DRAWN._replace(policy="kl-ucb-br", law=Law(bytes([0, 1, 1, 3]), bytes([1, 3, 3, 4])))
PRODUCTION = DRAWN._replace(
    row=(), instead=("p", "q", "r"), law=NO_LAW, challenger=None, visitor=b"", request_id=None, source=b""
)
RENEWING = DRAWN._replace(law=drawn_law(*GROUPS, WEIGHTS, (2 | TARGET, 1, 8, 4 | TARGET)))
SHADOW = PAIRS._replace(arm=3, instead=("p", "q", "r"))
PINNED = DRAWN._replace(k=5, base=("p", "a", "c", "q", "ö"), pins=0b01001)
SHADOW_PINNED = PINNED._replace(arm=3, base=(), instead=PINNED.base)


@pytest.mark.parametrize("record", [DRAWN, PAIRS, PRODUCTION, RENEWING, SHADOW, PINNED, SHADOW_PINNED])
def test_records_are_packed_without_loss(record: PageRecord) -> None:
    packed = record.packed()
    assert unpacked(packed) == record
    assert unpacked(packed).packed() == packed


def test_what_is_shown_and_hidden() -> None:
    assert (DRAWN.shown, DRAWN.hidden) == (("a", "ö", "c"), ("x",))
    assert (SHADOW.shown, SHADOW.row[:3]) == (("p", "q", "r"), ("a", "ö", "c"))
    assert DRAWN.closes_at == DRAWN.issued_at + 1_800_000
    assert (PINNED.shown, PINNED.hidden, PINNED.positions) == (("p", "a", "ö", "q", "c"), ("x",), 3)
    assert (SHADOW_PINNED.shown, SHADOW_PINNED.chosen) == (PINNED.base, PINNED.shown)


@pytest.mark.parametrize(
    "record",
    [
        PINNED._replace(pins=0b100001),  # beyond the page
        PINNED._replace(pins=1 << 127),
        PINNED._replace(k=3, base=("p", "q", "r"), pins=0b111),  # nothing is left
        PINNED._replace(pins=0b00011),  # an item of the row
        PINNED._replace(k=6, base=(*PINNED.base, "r"), pins=0b1),  # the row is too short
        PINNED._replace(base=()),  # it does not say what is pinned
    ],
)
def test_pins_that_a_page_cannot_have_are_refused_even_with_the_checksum(record: PageRecord) -> None:
    with pytest.raises(DamagedRecordError, match="places"):
        unpacked(record.packed())


def test_a_page_of_pairs_is_small() -> None:
    """A million pages are to stay in a few hundred MB with their index and clicks."""
    names = tuple(f"item-{number}" for number in range(11))
    ten = PAIRS._replace(row=names, k=10, law=Law(bytes(range(11)), bytes(range(1, 12))), request_id=None, source=b"")
    assert len(ten.packed()) < 260


@pytest.mark.parametrize("record", [DRAWN, PAIRS])
def test_any_flipped_byte_and_any_cut_is_found(record: PageRecord) -> None:
    packed, dice = record.packed(), random.Random(1)
    for place in range(len(packed)):
        damaged = packed[:place] + bytes([packed[place] ^ dice.randrange(1, 256)]) + packed[place + 1 :]
        with pytest.raises(DamagedRecordError):
            unpacked(damaged)
        with pytest.raises(DamagedRecordError):
            unpacked(packed[:place])


@pytest.mark.parametrize(
    "law",
    [
        Law(bytes([0, 0, 2, 9]), bytes([1, 2, 3, 4])),
        Law(bytes([0, 0, 2, 2]), bytes([1, 2, 3, 200])),
        Law(bytes([0, 0, 2, 2]), bytes([0, 2, 3, 4])),
        drawn_law(bytes(4), bytes([4] * 4), (1.0, float("nan"), 1.0, 1.0), (0,) * 4),
        drawn_law(bytes(4), bytes([4] * 4), (1.0, -1.0, 1.0, 1.0), (0,) * 4),
        drawn_law(bytes(4), bytes([4] * 4), (1.0,) * 4, (0, 0, 0, 1 << 4)),
        drawn_law(bytes(4), bytes([4] * 4), (1.0,) * 4, (TARGET, 0, 0, 0)),
    ],
)
def test_a_record_with_places_that_it_does_not_have_is_refused_even_with_its_checksum(law: Law) -> None:
    with pytest.raises(DamagedRecordError, match="places"):
        unpacked(DRAWN._replace(law=law).packed())


def test_a_record_that_shows_more_than_it_has_is_refused() -> None:
    body = bytearray(PAIRS.packed()[:-4])
    body[35] = 5  # k
    with pytest.raises(DamagedRecordError, match="places"):
        unpacked(bytes(body) + struct.pack("<I", zlib.crc32(bytes(body))))
