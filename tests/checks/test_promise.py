"""A policy that promises safety is held to it, by its own certificates."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.checks import ContractError
from saferank.checks.policy import Promise, Verbs
from saferank.policies import POLICIES, PolicyKind, Setup
from saferank.statistics.certificates import ENDLESS, Certificates, keep_certificate, new_certificates
from saferank.statistics.decision import decision_rule
from tests.policies.all_orders import consistent, worst_excess

SETUP = Setup(5, 3, decision_rule("paper:0.1"))
SAFE = POLICIES["kl-ucb-br"]


class Duels(NamedTuple):
    certificates: Certificates


class State(NamedTuple):
    duels: Duels


def knowing(pairs: Sequence[tuple[int, int]]) -> State:
    kept = new_certificates(20)
    for better, worse in pairs:
        keep_certificate(kept, better, worse, 1, ENDLESS)
    return State(Duels(kept))


def allows(shown: list[int], pairs: Sequence[tuple[int, int]], kind: PolicyKind = SAFE) -> bool:
    try:
        Promise(kind, SETUP, Verbs()).check(knowing(pairs), shown)
    except ContractError:
        return False
    return True


def test_it_allows_exactly_what_no_possible_order_forbids() -> None:
    """L = 5, K = 3: three wrong pairs beyond the original's; compared with all 120 orders."""
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(150):
        truth, shown = rng.permutation(5).tolist(), rng.permutation(5)[:3].tolist()
        pairs = [(i, j) for i in truth for j in truth if truth.index(i) < truth.index(j) and rng.random() < 0.4]
        safe = worst_excess(consistent(5, set(pairs)), [0, 1, 2], shown) <= 3
        assert allows(shown, pairs) == safe
        seen.add(safe)
    assert seen == {True, False}


def test_certificates_are_taken_in_as_they_come() -> None:
    promise, state = Promise(SAFE, SETUP, Verbs()), knowing([])
    with pytest.raises(ContractError, match=r"shows \[4, 3, 2\] in place of the original \[0, 1, 2\] of 5 items"):
        promise.check(state, [4, 3, 2])
    for better in (3, 4):
        for worse in (0, 1, 2):
            keep_certificate(state.duels.certificates, better, worse, 1, ENDLESS)
    promise.check(state, [4, 3, 2])


def test_certificates_that_contradict_each_other_end_the_check() -> None:
    assert allows([4, 3, 2], [(0, 1), (1, 2), (2, 0)])


def test_a_policy_without_a_promise_or_beyond_twelve_items_is_not_held_to_it() -> None:
    assert allows([4, 3, 2], [], replace(SAFE, safe=False))
    large: Any = replace(SETUP, n_items=13)
    Promise(SAFE, large, Verbs()).check(knowing([]), [12, 11, 10])


def test_a_policy_without_certificates_may_show_what_is_safe_whatever_the_truth() -> None:
    unsure = replace(SAFE, certifies=False)
    assert allows([1, 0, 2], [], unsure) and not allows([3, 4, 0], [], unsure)
