"""Arrays moved into one block, and kernels whose arguments are unpacked once: the same pages as by ordinary calls."""

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank import memory
from saferank._kernel import JIT
from saferank.live.learner import Learner
from saferank.live.replay import Workspace, drawing, new_workspace
from saferank.memory import in_one_block
from saferank.policies import POLICIES, Setup
from saferank.randomness import Words
from saferank.saved_state import flatten
from saferank.verbs import Flags, Impression, Ints, choose, freeze, new_impression

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
        _, evidence = kind.start(Setup(7, 3, examination=(1.0, 0.8, 0.6)))
        for (name, old), (_, new) in zip(flatten(evidence), flatten(in_one_block(evidence)), strict=True):
            assert np.array_equal(old, new), name
            assert new.dtype == old.dtype and new.flags.c_contiguous and new.flags.aligned and new.flags.writeable


def test_two_blocks_share_no_cache_line() -> None:
    one, other = (in_one_block((np.zeros(1, np.int64), np.zeros(4, np.uint64))) for _ in range(2))
    lines = [{array.ctypes.data // 64 for array in block} for block in (one, other)]
    assert not lines[0] & lines[1]


# --- kernels with fixed arguments ---


OPTIONS: dict[str, dict[str, Any]] = {
    "kl-ucb-br": {"rule": "paper:1e-5"},
    "safe-draw": {"rule": "anytime:1e-5", "lifetime": 1000},
}


def learner_of(policy: str, size: int) -> Learner:
    items = [str(number) for number in range(size)]
    return Learner(policy, original=items[:2], candidates=items[2:], **OPTIONS[policy])


def words() -> Words:
    return np.arange(1, 5, dtype=np.uint64)


def drawing_of(learner: Learner) -> tuple[Callable[[], None], Workspace]:
    """A page is drawn into the workspace by each call."""
    call = learner.call(learner.items[:2], learner.items[2:])
    plan, workspace = learner.plan(call, 0), new_workspace(2, learner.places(call))
    workspace.words[:] = words()
    return drawing(learner.policy, learner.evidence, plan, workspace), workspace


@pytest.mark.parametrize("policy", OPTIONS)
@pytest.mark.parametrize("size", [3, 13])
def test_pages_are_those_of_choose_and_freeze(policy: str, size: int) -> None:
    one, other = learner_of(policy, size), learner_of(policy, size)
    draw, workspace = drawing_of(one)
    call = other.call(other.items[:2], other.items[2:])
    plan, expected, plain_rng = other.plan(call, 0), new_impression(2, other.places(call)), words()
    assert isinstance(draw, memory._Bound) == JIT
    for number in range(50):
        workspace.issued[0] = number
        draw()
        expected.round[0] = number + 1
        choose(other.policy, other.evidence, plan, plain_rng, expected)
        freeze(other.policy, other.evidence, plan, expected, np.ones(2, np.int64))
        for name in Impression._fields:
            assert np.array_equal(getattr(workspace.impression, name), getattr(expected, name)), name
        assert np.array_equal(workspace.words, plain_rng)


def test_arrays_live_as_long_as_what_is_bound() -> None:
    draw, workspace = drawing_of(learner_of("kl-ucb-br", 3))
    gc.collect()
    rubbish = [np.full(size, 255, np.uint8) for size in range(1, 500)]
    for _ in range(20):
        draw()
        assert sorted(workspace.impression.shown) in ([0, 1], [0, 2], [1, 2])
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
    plan, workspace = learner.plan(learner.call(learner.items[:2], learner.items[2:]), 0), new_workspace(2, 3)
    thin = workspace.impression._replace(weight=np.zeros(2 * len(workspace.impression.weight))[::2])
    with pytest.raises(TypeError, match="C order"):
        drawing(learner.policy, learner.evidence, plan, workspace._replace(impression=thin))
