"""Random words, draws and shuffles equal the transcription draw by draw, and are as uniform as they should be."""

import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import saferank
from saferank.randomness import below, shuffle_front, stream, uniform, word
from tests.reference import randomness as reference

SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_words_and_uniform_numbers_equal_the_reference(seed: int) -> None:
    rng = stream(seed, "words")
    slow = reference.Xoshiro(rng.tolist())
    for _ in range(50):
        assert word(rng) == slow.word()
        assert uniform(rng) == slow.uniform()
    assert rng.tolist() == slow.state


def test_words_equal_the_published_generator() -> None:
    """The first words of xoshiro256++ from the state 1, 2, 3, 4, as every implementation of it documents."""
    rng = np.array([1, 2, 3, 4], np.uint64)
    assert [int(word(rng)) for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]


@given(SEEDS, st.integers(1, 100) | st.integers(2**31, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_draws_below_a_bound_equal_the_reference(seed: int, n: int) -> None:
    """Bounds beyond 2^31 reject up to half of the words."""
    rng = stream(seed, "below")
    slow = reference.Xoshiro(rng.tolist())
    for _ in range(30):
        assert below(rng, n) == slow.below(n) < n
    assert rng.tolist() == slow.state


@given(SEEDS, st.tuples(*[st.integers(0, 12)] * 3).map(sorted))
@settings(max_examples=100, deadline=None)
def test_shuffles_equal_the_reference(seed: int, cuts: list[int]) -> None:
    start, stop, end = cuts
    rng, items = stream(seed, "shuffle"), np.arange(12, dtype=np.uint32)
    slow, plain = reference.Xoshiro(rng.tolist()), list(range(12))
    shuffle_front(rng, items, start, stop, end)
    reference.shuffle_front(slow, plain, start, stop, end)
    assert items.tolist() == plain
    assert rng.tolist() == slow.state


def too_uneven(counts: list[int]) -> bool:
    """Pearson's test of equal chances; uniform counts are called uneven with probability 1e-6."""
    expected = sum(counts) / len(counts)
    return float(sum((count - expected) ** 2 for count in counts) / expected) > chi2.isf(1e-6, len(counts) - 1)


@pytest.mark.parametrize("n", [2, 3, 6, 100])
def test_draws_below_a_bound_are_uniform(n: int) -> None:
    """Fails for a correct generator with probability 1e-6 each; the seeds are fixed."""
    rng, counts = stream(3, "chi", n), [0] * n
    for _ in range(50_000):
        counts[below(rng, n)] += 1
    assert not too_uneven(counts)


def test_all_orders_are_equally_likely() -> None:
    """Fails for a correct shuffle with probability 1e-6; the seed is fixed."""
    rng, counts = stream(4, "orders"), dict.fromkeys(permutations(range(4)), 0)
    for _ in range(24_000):
        items = np.arange(4, dtype=np.uint32)
        shuffle_front(rng, items, 0, 4, 4)
        counts[tuple(items.tolist())] += 1
    assert not too_uneven(list(counts.values()))


def test_the_test_of_uniformity_can_fail() -> None:
    assert too_uneven([10_400, 9_600])
    assert not too_uneven([10_100, 9_900])


def test_uniform_numbers_stay_below_one() -> None:
    assert uniform(np.array([2**64 - 1, 0, 0, 0], np.uint64)) < 1
    assert all(0 <= uniform(stream(seed, "u")) < 1 for seed in range(1000))


def test_streams_are_fixed_by_seed_and_key_and_differ_otherwise() -> None:
    keys = [(), ("a",), ("b",), ("a", "b"), ("ab",), ("a", 1), ("a", "1"), ("a", 1, 1), ("a", 11), ("b", "a")]
    states = [tuple(stream(seed, *key).tolist()) for seed in (0, 1, 2**40) for key in keys]
    again = [tuple(stream(seed, *key).tolist()) for seed in (0, 1, 2**40) for key in keys]
    assert states == again
    assert len(set(states)) == len(states)
    assert all(any(state) for state in states)  # a state of zeros would give only zeros


ZERO_COINS = """
import numpy as np
from saferank import Ranker
from saferank.randomness import below
from saferank.verbs import NO_ITEM
assert below(np.zeros(4, np.uint64), 3) in (0, 1, 2)
for policy, n_items, lifetime in (
    ("safe-draw", 8, None), ("safe-draw", 8, 30), ("safe-draw", 14, None), ("safe-draw", 14, 30),
    ("bubble-rank", 8, None), ("top-rank", 8, None), ("pbm-ts", 8, None),
):
    items = [str(number) for number in range(n_items)]
    rule = "paper:0.3" if policy == "top-rank" else "anytime:0.3"
    options = {"rule": rule, "lifetime": lifetime, "examination": (1.0, 0.8, 0.6)}
    ranker = Ranker(policy, original=items[:3], candidates=items[3:], **options)
    for number in range(60):
        ranker._rng[:] = 0
        page = ranker.rank()
        assert len(set(page.items)) == 3
        ranker.feedback(page, page.items[2:])
print("done")
"""


def test_coins_that_are_all_zero_give_pages_too() -> None:
    """xoshiro has one state that it never leaves: with it, what is drawn until it fits would be drawn for ever."""
    command = [sys.executable, "-c", ZERO_COINS]
    source = Path(saferank.__file__).parents[1]
    changes = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(source)}
    done = subprocess.run(
        command, env={**os.environ, **changes}, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
