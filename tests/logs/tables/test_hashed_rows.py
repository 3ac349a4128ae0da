"""The hash table of rows against a dict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.logs.tables import hashed_rows
from saferank.logs.tables.hashed_rows import NOWHERE, add_row, entry_of, heaviest, new_rows, with_room

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(2**32 - 3, 2**32 - 1)), max_size=60)


@settings(deadline=None)
@given(ROWS)
def test_entries_are_numbered_as_they_come_like_a_dict(rows: list[tuple[int, int]]) -> None:
    table, expected = new_rows(2, np.uint32, n_slots=16), dict[tuple[int, int], int]()
    for weight, row in enumerate(rows):
        table = with_room(table, 1)
        expected[row] = expected.get(row, 0) + weight
        assert add_row(table, np.array(row, np.uint32), weight) == list(expected).index(row)
    used = int(table.used[0])
    assert [tuple(row) for row in table.rows[:used].tolist()] == list(expected)
    assert table.weight[:used].tolist() == list(expected.values())
    assert entry_of(table, np.array([9, 9], np.uint32)) == NOWHERE


def test_it_grows_to_many_rows_and_keeps_them() -> None:
    table, keys = new_rows(1, np.uint64), np.arange(3000, dtype=np.uint64) * np.uint64(2**50)
    for key in keys.reshape(-1, 1):
        table = with_room(table, 1)
        add_row(table, key, 2)
    assert [entry_of(table, key) for key in keys.reshape(-1, 1)] == list(range(3000))
    assert int(table.weight.sum()) == 6000
    assert len(table.slots) * 3 // 4 >= 3000


@pytest.mark.parametrize("block", [1, 2, 100])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_the_heaviest_come_first_and_of_equals_the_first(n: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashed_rows, "_BLOCK", block)
    table = new_rows(1, np.uint64)
    for key, weight in enumerate([3, 5, 3, 7, 3]):
        add_row(table, np.array([key], np.uint64), weight)
    assert heaviest(table, n).tolist() == [3, 1, 0, 2, 4][:n]
