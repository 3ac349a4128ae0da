"""Columns say of many records what ``unpacked`` says of each, and refuse the same ones."""

import itertools
import math
import random
import zlib

import numpy as np
import pytest

from saferank.store.page_record import SOURCE, VISITOR, DamagedRecordError, PageRecord, read_record
from saferank.store.record_columns import (
    ARM,
    CONTEXT,
    FLAGS,
    ISSUED_AT,
    KNOWLEDGE,
    LAST_OF_ID,
    PINNED_PLACES,
    POLICY,
    ROUND,
    SHARE,
    SOURCE_KEY,
    TENANT,
    VISITOR_KEY,
    WINDOW_MS,
    K,
    RecordColumns,
)
from tests.store.laws import drawn_law
from tests.store.test_page_record import DRAWN, PAIRS, PINNED, PRODUCTION, RENEWING, SHADOW, SHADOW_PINNED

BASED = DRAWN._replace(base=("c", "absent", "a"))
AS_PRODUCTION = PAIRS._replace(base=PAIRS.row[:3], visitor=b"", source=b"")
WIDE = PAIRS._replace(
    row=tuple(f"i{number}" for number in range(70)),
    law=drawn_law(bytes(range(70)), bytes(range(1, 71)), (1.0,) * 70, (1 << 63,) * 70),
)
UNMOVED = PINNED._replace(row=("a", "c", "ö", "x"))
RECORDS = [DRAWN, PAIRS, PRODUCTION, RENEWING, SHADOW, BASED, AS_PRODUCTION, WIDE, PINNED, SHADOW_PINNED, UNMOVED]
NAMES = {name: number for number, name in enumerate(("a", "ö", "c", "x", "p", "q", "absent"))}


def named(items: tuple[str, ...], width: int) -> list[int]:
    return [NAMES.get(item, -1) for item in items[:width]] + [0] * (width - len(items))


def test_columns_are_the_facts_of_the_records() -> None:
    packed = [record.packed() for record in RECORDS]
    columns = RecordColumns(packed)
    columns.check()
    for which, name in ((ARM, "arm"), (KNOWLEDGE, "knowledge"), (ROUND, "round"), (WINDOW_MS, "window_ms"), (K, "k")):
        assert columns.column(which).tolist() == [getattr(record, name) for record in RECORDS]
    assert columns.column(PINNED_PLACES).tolist() == [record.pins.bit_count() for record in RECORDS]
    assert [int.from_bytes(pins, "little") for pins in columns.pins.tolist()] == [record.pins for record in RECORDS]
    assert columns.column(SHARE).view(np.float64).tolist() == [record.share for record in RECORDS]
    for flag, which, wanted in (
        (VISITOR, VISITOR_KEY, [record.visitor for record in RECORDS]),
        (SOURCE, SOURCE_KEY, [record.source for record in RECORDS]),
    ):
        here = columns.column(FLAGS) & flag != 0
        words = columns.column(which)
        assert [word.tobytes() if has else b"" for has, word in zip(here, words, strict=True)] == wanted
    assert columns.has_text(CONTEXT, RECORDS[0].context).tolist() == [
        one.context == RECORDS[0].context for one in RECORDS
    ]
    assert columns.has_text(POLICY, "safe-draw").tolist() == [record.policy == "safe-draw" for record in RECORDS]
    assert not columns.has_text(TENANT, "nobody").any()
    assert columns.column(LAST_OF_ID).tolist() == [int.from_bytes(record.impression[-4:], "big") for record in RECORDS]
    assert columns.column(ISSUED_AT).tolist() == [record.issued_at for record in RECORDS]
    for name in ("impression", "catalogue", "coins", "server"):
        assert columns.field(name) == [getattr(record, name) for record in RECORDS]


def test_items_of_records_are_numbered() -> None:
    columns = RecordColumns([record.packed() for record in RECORDS])
    assert columns.shown(NAMES, 5).tolist() == [named(record.shown, 5) for record in RECORDS]
    without = [[NAMES.get(item, -1) for item in record.production] for record in RECORDS]
    assert columns.production(NAMES, 5).tolist() == [[*items, *[-1] * (5 - len(items))] for items in without]


def test_laws_of_records_stand_by_place() -> None:
    laws = RecordColumns([record.packed() for record in RECORDS]).columns
    weights = laws.weight.view(np.float64)
    for number, record in enumerate(RECORDS):
        places, law = len(record.row), record.law
        assert bytes(laws.start[number, :places]) == law.start and bytes(laws.end[number, :places]) == law.end
        assert tuple(weights[number, : len(law.weight)].tolist()) == law.weight
        assert tuple(laws.exchanges[number, : len(law.exchanges)].tolist()) == law.exchanges
        assert not laws.end[number, places:].any() and not weights[number, len(law.weight) :].any()


def test_a_selection_says_the_same() -> None:
    columns = RecordColumns([record.packed() for record in RECORDS])
    some = columns.select(np.array([5, 3, 1])).select(np.array([True, False, True]))
    assert some.has_text(POLICY, PAIRS.policy).tolist() == [BASED.policy == PAIRS.policy, True]
    assert some.record(-1) == PAIRS
    assert some.shown(NAMES, 4).tolist() == [named(BASED.shown, 4), named(PAIRS.shown, 4)]
    assert len(columns.select(np.zeros(len(RECORDS), np.bool_))) == len(RecordColumns([])) == 0


def test_records_of_a_visitor_or_a_source_are_found() -> None:
    columns = RecordColumns([record.packed() for record in RECORDS])
    for key, source in ((PAIRS.visitor, b""), (b"", PAIRS.source), (PAIRS.visitor, b"somebody"), (b"", b"")):
        theirs = [(bool(key) and one.visitor == key) or (bool(source) and one.source == source) for one in RECORDS]
        assert columns.of_visitor(key, source).tolist() == np.flatnonzero(theirs).tolist()


def refused(data: bytes) -> bool:
    """The checks once more, one record at a time and in plain Python."""
    if len(data) < 119 or data[0] != 4 or zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        return True
    try:
        record = read_record(data)
    except (ValueError, IndexError):
        return True
    law, places = record.law, data[36]
    groups = list(zip(law.start, range(places), law.end, strict=False))
    fits = len(record.row) == len(groups) == len(law.end) == places
    fits = fits and all(start <= place < end <= places for start, place, end in groups)
    if data[2] & 2:
        fits = fits and len(law.draw) == 16 * places
        fits = fits and math.isfinite(sum(law.weight)) and min(law.weight, default=0.0) >= 0.0
        marked = [place for place, bits in enumerate(law.exchanges) if bits >> 62 & 1] if places <= 62 else []
        allowed = 2**places - 1 | (2**62 if len(marked) == 2 else 0)
        fits = fits and all(bits & ~allowed == 0 for bits in law.exchanges)
    free = [place for place in range(record.k) if not record.pins >> place & 1]
    at = 115 + 8 * bool(data[2] & 8) + 16 * bool(data[2] & 32) + (18 if data[2] & 2 else 2) * places
    in_row = {place for place in range(record.k) if data[2] & 4 and data[at + place] < places}
    fits = fits and record.pins < 2**record.k and (free != [] or record.k == 0)
    fits = fits and (not record.pins or (len(record.production) == record.k and in_row <= set(free)))
    fits = fits and (len(record.instead) == record.k if record.instead else len(free) <= places)
    fits = fits and (places == 0 or len(free) <= places < 255)
    return not (fits and (record.challenger or 0) <= max(0, places - 1) and 0.0 <= record.share <= 1.0) or (
        record.challenger == 0 and places == 0
    )


def is_refused_among_others(data: bytes) -> bool:
    """Among records that are whole."""
    try:
        RecordColumns([DRAWN.packed(), data, PRODUCTION.packed()]).check()
    except DamagedRecordError:
        return True
    return False


@pytest.mark.parametrize("record", RECORDS[:7])
def test_any_flipped_byte_and_any_cut_is_found(record: PageRecord) -> None:
    packed, dice = record.packed(), random.Random(1)
    for place in range(len(packed)):
        assert is_refused_among_others(
            packed[:place] + bytes([packed[place] ^ dice.randrange(1, 256)]) + packed[place + 1 :]
        )
        assert is_refused_among_others(packed[:place])


@pytest.mark.parametrize("record", RECORDS)
def test_what_has_the_right_checksum_is_refused_exactly_if_unpacking_refuses_it(record: PageRecord) -> None:
    """An attacker who can write checksums must not reach compiled code with places that are not there."""
    body, dice, verdicts = record.packed()[:-4], random.Random(2), set()
    for place, value in itertools.product(range(len(body)), (0, 1, 3, 4, 0x7F, 0xFF, None)):
        byte = dice.randrange(256) if value is None else value
        changed = body[:place] + bytes([byte]) + body[place + 1 :]
        data = changed + zlib.crc32(changed).to_bytes(4, "little")
        verdict = refused(data)
        assert is_refused_among_others(data) == verdict, (place, byte)
        verdicts.add(verdict)
    assert verdicts == {True, False}


def test_a_record_of_another_format_is_told_by_its_number() -> None:
    other = bytes([99]) + DRAWN.packed()[1:]
    assert RecordColumns([DRAWN.packed(), other, b""]).faults() == {
        1: "a page record of the unknown format 99",
        2: "a page record of the unknown format None",
    }
