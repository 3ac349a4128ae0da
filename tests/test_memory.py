"""Arrays moved into one block, and kernels whose arguments are unpacked once: the same pages as by ordinary calls."""

import functools
import gc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank import memory
from saferank._kernel import JIT
from saferank.live.learner import Learner
from saferank.live.replay import CHOSEN, Desk, carrying_out, new_desk, new_pages
from saferank.memory import Scratch, in_one_block
from saferank.policies import POLICIES, Setup, freeze
from saferank.randomness import Words
from saferank.saved_state import flatten
from saferank.verbs import Flags, Impression, Ints, Items, choose, new_impression

# --- one block ---


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


def test_scratches_of_one_shape_share_their_memory_and_see_nothing_of_each_other() -> None:
    numbers, word = np.arange(3), np.zeros(1, np.uint64)
    one, other = Scratch((numbers, word)), Scratch((numbers + 1, word))
    assert np.shares_memory(one.parts[0], other.parts[0]) and not np.shares_memory(one.parts[0], numbers)
    one.restore()
    assert one.parts[0].tolist() == [0, 1, 2]
    one.parts[0][0], one.parts[1][0] = 99, 99
    other.restore()
    assert other.parts[0].tolist() == [1, 2, 3] and other.parts[1].tolist() == [0]


# --- kernels with fixed arguments ---


OPTIONS: dict[str, dict[str, Any]] = {
    "kl-ucb-br": {"rule": "paper:1e-5"},
    "safe-draw": {"rule": "anytime:1e-5", "lifetime": 1000},
}


def learner_of(policy: str, size: int) -> Learner:
    items = [str(number) for number in range(size)]
    return Learner(policy, original=items[:2], candidates=items[2:], **OPTIONS[policy])


def desk_of(learner: Learner) -> Desk:
    desk = new_desk(2, learner.kind.places(learner.setup))
    desk.words[:] = words()
    return desk


def choosing(learner: Learner, desk: Desk) -> Callable[[], None]:
    one_page = new_pages(1, 2)
    one_page.operation[0] = CHOSEN
    return carrying_out(learner.policy, learner.state, one_page, desk)


def words() -> Words:
    return np.arange(1, 5, dtype=np.uint64)


@pytest.mark.parametrize("policy", OPTIONS)
@pytest.mark.parametrize("size", [3, 13])
def test_pages_are_those_of_choose_and_freeze(policy: str, size: int) -> None:
    one, other = learner_of(policy, size), learner_of(policy, size)
    desk, expected, plain_rng = desk_of(one), new_impression(2, other.kind.places(other.setup)), words()
    choose_one = choosing(one, desk)
    assert isinstance(choose_one, functools.partial) != JIT
    for _ in range(50):
        desk.done[0] = 0
        choose_one()
        choose(other.policy, other.state, plain_rng, expected)
        freeze(other.policy, other.state, expected)
        for name in Impression._fields:
            assert np.array_equal(getattr(desk.impression, name), getattr(expected, name)), name
        assert np.array_equal(desk.words, plain_rng)


def test_arrays_live_as_long_as_what_is_bound() -> None:
    def made() -> tuple[Callable[[], None], Ints, Items]:
        learner = learner_of("kl-ucb-br", 3)
        desk = desk_of(learner)
        return choosing(learner, desk), desk.done, desk.impression.shown

    choose_one, done, shown = made()
    gc.collect()
    rubbish = [np.full(size, 255, np.uint8) for size in range(1, 500)]
    for _ in range(20):
        done[0] = 0
        choose_one()
        assert sorted(shown) in ([0, 1], [0, 2], [1, 2])
    assert len(rubbish) == 499


def test_an_address_is_that_of_the_array_that_lives_now() -> None:
    for _ in range(100):
        array = np.zeros(3)
        assert memory._facts_of(array)[2] == (array.ctypes.data, 3)
    del array
    gc.collect()
    assert all(known() is not None for known, _, _ in memory._facts.values())


@pytest.mark.skipif(not JIT, reason="interpreted: anything goes")
def test_an_unforeseen_argument_is_refused_and_nothing_is_compiled_for_it() -> None:
    learner = learner_of("kl-ucb-br", 3)
    desk = desk_of(learner)
    thin = desk.impression._replace(weight=np.zeros(2 * len(desk.impression.weight))[::2])
    with pytest.raises(TypeError, match="C order"):
        choosing(learner, desk._replace(impression=thin))
