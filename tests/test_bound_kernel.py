"""Kernels whose arguments are unpacked once: the same pages as by the ordinary calls, and what cannot be bound."""

import functools
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saferank import _bound_kernel
from saferank._bound_kernel import bound
from saferank._kernel import JIT
from saferank.live.learner import Learner
from saferank.policies import freeze, issuing
from saferank.policies.shared.issuing import _issue, _issue_from
from saferank.randomness import Words
from saferank.verbs import Impression, Items, choose, new_impression

OPTIONS: dict[str, dict[str, Any]] = {
    "kl-ucb-br": {"rule": "paper:1e-5"},
    "safe-draw": {"rule": "anytime:1e-5", "lifetime": 1000},
}


def learner_of(policy: str, size: int) -> Learner:
    items = [str(number) for number in range(size)]
    return Learner(policy, original=items[:2], candidates=items[2:], **OPTIONS[policy])


def page_of(learner: Learner) -> Impression:
    return new_impression(2, learner.kind.places(learner.setup))


def words() -> Words:
    return np.arange(1, 5, dtype=np.uint64)


@pytest.mark.parametrize("policy", OPTIONS)
@pytest.mark.parametrize("size", [3, 13])
def test_pages_are_those_of_choose_and_freeze(policy: str, size: int) -> None:
    one, other = learner_of(policy, size), learner_of(policy, size)
    page, rng, expected, plain_rng = page_of(one), words(), page_of(other), words()
    issue = issuing(one.policy, one.state, rng, page)
    assert isinstance(issue, functools.partial) != JIT
    for _ in range(50):
        issue()
        choose(other.policy, other.state, plain_rng, expected)
        freeze(other.policy, other.state, expected)
        for name in Impression._fields:
            assert np.array_equal(getattr(page, name), getattr(expected, name)), name
        assert np.array_equal(rng, plain_rng)


def test_arrays_live_as_long_as_what_is_bound() -> None:
    def made() -> tuple[Callable[[], None], Items]:
        learner = learner_of("kl-ucb-br", 3)
        page = page_of(learner)
        return issuing(learner.policy, learner.state, words(), page), page.shown

    issue, shown = made()
    gc.collect()
    rubbish = [np.full(size, 255, np.uint8) for size in range(1, 500)]
    for _ in range(20):
        issue()
        assert sorted(shown) in ([0, 1], [0, 2], [1, 2])
    assert len(rubbish) == 499


def test_an_address_is_that_of_the_array_that_lives_now() -> None:
    for _ in range(100):
        array = np.zeros(3)
        assert _bound_kernel._address_of(array) == array.ctypes.data
    del array
    gc.collect()
    assert all(known() is not None for known, _ in _bound_kernel._addresses.values())


def test_what_cannot_be_bound_is_called_as_usual() -> None:
    learner = learner_of("kl-ucb-br", 3)
    page = page_of(learner)
    thin = page._replace(weight=np.zeros(2 * len(page.weight))[::2])  # not in C order
    issue = bound(_issue_from, _issue, learner.policy, learner.state, words(), thin)
    assert isinstance(issue, functools.partial)
    issue()
    assert thin.round[0] == 1
