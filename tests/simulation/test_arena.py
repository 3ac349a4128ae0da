"""Arrays moved into one block: equal, writable, apart from the old ones, and side by side."""

from typing import NamedTuple

import numpy as np

from saferank.policies import POLICIES, Setup
from saferank.saved_state import flatten
from saferank.simulation.arena import in_one_block
from saferank.verbs import Flags, Ints


class Inner(NamedTuple):
    flags: Flags
    matrix: Ints


class Outer(NamedTuple):
    inner: Inner
    empty: Ints


def test_contents_types_and_nesting_stay() -> None:
    matrix = np.arange(6).reshape(2, 3)
    before = (Outer(Inner(np.array([True, False, True]), matrix), np.zeros(0, np.int64)), np.ones(2, np.uint32))
    after = in_one_block(before)
    assert isinstance(after[0], Outer) and isinstance(after[0].inner, Inner)
    after[0].inner.matrix[0, 0] = 9
    assert matrix[0, 0] == 0 and after[0].inner.matrix.tolist() == [[9, 1, 2], [3, 4, 5]]
    assert after[0].inner.flags.tolist() == [True, False, True] and after[0].empty.shape == (0,)
    assert after[1].dtype == np.uint32


def test_every_state_keeps_types_that_kernels_know() -> None:
    """Same dtype, contiguous, aligned, writable: otherwise numba would compile everything again."""
    for kind in POLICIES.values():
        _, state = kind.start(Setup(7, 3, examination=(1.0, 0.8, 0.6)))
        for (name, old), (_, new) in zip(flatten(state), flatten(in_one_block(state)), strict=True):
            assert np.array_equal(old, new), name
            assert new.dtype == old.dtype and new.flags.c_contiguous and new.flags.aligned and new.flags.writeable


def test_two_blocks_share_no_cache_line() -> None:
    one, other = (in_one_block((np.zeros(1, np.int64), np.zeros(4, np.uint64))) for _ in range(2))
    lines = [{array.ctypes.data // 64 for array in block} for block in (one, other)]
    assert not lines[0] & lines[1]
