"""Saved bytes: whatever is done to them, loading gives the ranker back or a sentence, never anything else."""

import hashlib
import json
import mmap
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank import Ranker, SavedStateError
from saferank.saved_state import FORMAT_VERSION, MAGIC, from_bytes, to_bytes


def saved() -> bytes:
    ranker = Ranker("kl-ucb-br", original=["a", "b"], candidates=["x", "y"], seed=3)
    for _ in range(50):
        page = ranker.rank()
        ranker.feedback(page, page.items[:1])
    return ranker.save()


SAVED = saved()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(SAVED) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(place: int, change: int) -> None:
    damaged = bytearray(SAVED)
    damaged[place] ^= change
    with pytest.raises(SavedStateError):
        Ranker.load(bytes(damaged))


@pytest.mark.parametrize("length", [0, 5, 8, 9, 20, 300, -33, -1])
def test_truncated_bytes_are_refused(length: int) -> None:
    with pytest.raises(SavedStateError, match=r"cut off|do not begin with SAFERANK"):
        Ranker.load(SAVED[:length])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SavedStateError):
        Ranker.load(data)


def test_messages_say_what_is_wrong() -> None:
    with pytest.raises(SavedStateError, match="do not begin with SAFERANK"):
        Ranker.load(b"PK\x03\x04 some zip file, long enough to hold a digest at its end, one would think")
    with pytest.raises(SavedStateError, match="not str"):
        Ranker.load("text")  # type: ignore[arg-type]
    with pytest.raises(SavedStateError, match="damaged or cut off"):
        Ranker.load(SAVED + b"!")
    for version in (FORMAT_VERSION - 1, FORMAT_VERSION + 1):
        with pytest.raises(SavedStateError, match=f"was saved in format {version}; this saferank reads format"):
            Ranker.load(MAGIC + struct.pack("<H", version) + SAVED[10:])


def tampered(**facts: object) -> bytes:
    """A file with a valid checksum whose contents do not fit together."""
    old, arrays = from_bytes(SAVED)
    return to_bytes({**old, **facts}, arrays)


@pytest.mark.parametrize(
    "facts",
    [
        {"policy": "top-rank"},
        {"policy": "no-such-policy"},
        {"items": ["a", "b", "x"]},
        {"items": ["a", "a", "x", "y"]},
        {"items": 5},
        {"n_positions": 0},
        {"n_positions": -1},
        {"n_positions": 99},
        {"rule": "paper:7"},
        {"seed": "zero"},
    ],
)
def test_contents_that_do_not_fit_are_refused(facts: dict[str, object]) -> None:
    with pytest.raises(SavedStateError, match="cannot be restored"):
        Ranker.load(tampered(**facts))


def test_arrays_of_another_kind_are_refused() -> None:
    facts, arrays = from_bytes(SAVED)
    with pytest.raises(SavedStateError, match="has no row"):
        Ranker.load(to_bytes(facts, {name: array for name, array in arrays.items() if name != "plan.row"}))
    with pytest.raises(SavedStateError, match="row of the saved state is float64 of shape"):
        Ranker.load(to_bytes(facts, {**arrays, "plan.row": np.zeros(3)}))


def test_an_array_listed_longer_than_the_data_is_refused() -> None:
    header = json.dumps({"facts": {}, "arrays": [["x", "int64", [10**12]]]}).encode()
    forged = to_bytes({}, {})
    body = zlib.compress(struct.pack("<I", len(header)) + header)
    head = forged[:10]
    data = head + body + hashlib.sha256(head + body).digest()
    with pytest.raises(SavedStateError, match="longer than the data"):
        from_bytes(data)


def test_no_pickle_inside() -> None:
    body = zlib.decompress(SAVED[10:-32])
    (length,) = struct.unpack_from("<I", body)
    assert json.loads(body[4 : 4 + length])["facts"]["policy"] == "kl-ucb-br"
    assert b"numpy" not in body


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell")
def test_tables_that_are_mostly_zero_take_little_memory_when_they_are_loaded() -> None:
    """Eight tables of 32 MB with a number each; plain copies would take all of the 256 MB."""
    table = np.zeros(4 * 2**20, np.int64)
    table[12345] = 7
    data = to_bytes({}, {"table": table})
    from_bytes(data)
    before = resident()
    loaded = [from_bytes(data)[1]["table"] for _ in range(8)]
    assert resident() - before < 64 * 2**20
    assert all(np.array_equal(other, table) and other.flags.writeable for other in loaded)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 65536, 100_001])
def test_arrays_of_every_size_come_back(size: int) -> None:
    generator = np.random.default_rng(size)
    arrays: dict[str, Any] = {
        "bytes": generator.integers(0, 2, size).astype(np.uint8),
        "numbers": generator.normal(size=(size, 3)) * (generator.random((size, 1)) < 0.001),
        "nothing": np.zeros((0, size), np.int64),
        "flags": generator.random(size) < 0.5,
    }
    facts, loaded = from_bytes(to_bytes({"size": size}, arrays))
    assert facts == {"size": size}
    for name, array in arrays.items():
        assert np.array_equal(loaded[name], array) and loaded[name].dtype == array.dtype


def sealed(facts: dict[str, object], listing: list[list[object]], contents: bytes) -> bytes:
    """Bytes with a right checksum, whatever is in them."""
    header = json.dumps({"facts": facts, "arrays": listing}).encode()
    body = zlib.compress(struct.pack("<I", len(header)) + header + contents)
    head = MAGIC + struct.pack("<H", FORMAT_VERSION)
    return head + body + hashlib.sha256(head + body).digest()


def test_what_is_saved_grows_with_what_is_not_zero() -> None:
    table = np.zeros((200 * 200, 2, 8))
    empty = len(to_bytes({}, {"table": table}))
    assert empty < 300
    generator = np.random.default_rng(1)
    table[generator.integers(0, len(table), 50)] = generator.normal(size=(50, 2, 8))
    data = to_bytes({}, {"table": table})
    assert 50 * 100 < len(data) - empty < 50 * 150
    assert from_bytes(data)[1]["table"].tobytes() == table.tobytes()


def test_numbers_that_equal_zero_and_are_another_number_come_back() -> None:
    table = np.zeros(100_000)
    table[[3, 50_000, 99_999]] = -0.0, np.nan, -0.0
    assert from_bytes(to_bytes({}, {"table": table}))[1]["table"].tobytes() == table.tobytes()


@pytest.mark.parametrize(
    ("cells", "numbers", "problem"),
    [
        (1, [64], "not there"),
        (2, [5, 5], "not there"),
        (2, [6, 5], "not there"),
        (65, list(range(65)), "65 cells of 64"),
        (-1, [], "-1 cells"),
        (1, [], "longer than the data"),
        ("1", [1], "impossible content"),
    ],
)
def test_cells_that_cannot_be_are_refused(cells: object, numbers: list[int], problem: str) -> None:
    contents = np.array(numbers, np.uint32).tobytes() + bytes(64 * len(numbers))
    with pytest.raises(SavedStateError, match=problem):
        from_bytes(sealed({}, [["x", "uint8", [4096], cells]], contents))


def test_an_array_that_is_left_out_has_a_largest_size() -> None:
    with pytest.raises(SavedStateError, match="longer than the data"):
        from_bytes(sealed({}, [["x", "int64", [10**12], 0]], b""))
