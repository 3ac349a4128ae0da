"""The KL index equals the 30-digit transcription, and what is derived from it says the same without computing it."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saferank.statistics.kl import (
    FIRST_BUDGET,
    budget,
    duel_index,
    entropy,
    evidence,
    evidence_at_least,
    hopeless_until,
    kl_index,
    may_be_better,
    optimistic,
    rounds_within,
)
from tests.reference import kl_index as reference

WINS = st.integers(0, 30) | st.integers(0, 100_000)
TIMES = st.integers(FIRST_BUDGET, 100) | st.integers(FIRST_BUDGET, 10**9)

TABLE = [
    (0.5, 100, 100, 0.704843246568148),
    (0.25, 10, 50, 0.826855729192849),
    (0, 5, 3, 0.241301758410803),
    (0, 50, 1000, 0.224396458603065),
    (0.9, 20, 10, 0.996377194279807),
    (0.1, 200, 100000, 0.275882712369816),
    (0.45, 1000, 50000, 0.544645962128858),
    (0.5, 1, 3, 0.983943133954078),
]


@pytest.mark.parametrize(("mu", "n", "t", "index"), TABLE)
def test_it_equals_the_table_of_the_document(mu: float, n: int, t: int, index: float) -> None:
    assert kl_index(mu, n, t) == pytest.approx(index, abs=1e-12)


@given(st.floats(0, 1), st.integers(1, 10_000), TIMES)
@settings(max_examples=150, deadline=None)
def test_the_index_equals_the_reference(mu: float, n: int, t: int) -> None:
    assert kl_index(mu, n, t) == pytest.approx(reference.index_mu(mu, n, t), rel=1e-12)


@given(WINS, WINS, TIMES)
@settings(max_examples=200, deadline=None)
def test_the_index_of_a_duel_equals_the_reference(wins: int, losses: int, t: int) -> None:
    assert duel_index(wins, losses, t) == pytest.approx(reference.sbb(wins - losses, wins + losses, t), abs=1e-12)


@given(WINS, WINS, TIMES)
@settings(max_examples=200, deadline=None)
def test_who_may_be_better_has_a_positive_index(wins: int, losses: int, t: int) -> None:
    index = reference.sbb(wins - losses, wins + losses, t)
    assume(abs(index) > 1e-14)
    assert may_be_better(wins, losses, budget(t)) == (index > 0)


@pytest.mark.parametrize("losses", [1, 2, 10, 1000, 123_456])
def test_who_may_be_better_is_told_right_next_to_the_boundary(losses: int) -> None:
    """A budget a few last digits larger or smaller than the evidence against the index 0 makes the difference."""
    for wins in {0, losses // 3, losses - 1}:
        needed = entropy(wins, losses) + (wins + losses) * math.log(2)
        assert may_be_better(wins, losses, needed * (1 + 1e-11) + 1e-11)
        assert not may_be_better(wins, losses, needed * (1 - 1e-11) - 1e-11)


def test_the_index_is_one_without_evidence_or_time() -> None:
    assert kl_index(0.3, 0, 1000) == 1
    assert kl_index(1.0, 7, 1000) == 1
    assert kl_index(0.3, 7, 2) == kl_index(0.3, 7, 0) == 1
    assert duel_index(0, 0, 1000) == duel_index(9, 0, 1000) == duel_index(0, 5, 2) == 1
    assert duel_index(0, 5, 3) < 1


@given(st.integers(0, 5000), st.integers(1, 5000), TIMES)
@settings(deadline=None)
def test_the_evidence_at_the_index_is_the_budget(wins: int, losses: int, t: int) -> None:
    x = optimistic(float(wins), float(losses), entropy(wins, losses), budget(t))
    used = evidence(wins, losses, x, math.log1p(-math.exp(-x)))
    assert used == pytest.approx(budget(t), rel=1e-9, abs=1e-9 * (wins + losses))


@given(st.integers(FIRST_BUDGET, 10**7), st.floats(0, 30))
@settings(deadline=None)
def test_the_budget_stays_within_the_promised_rounds(t: int, more: float) -> None:
    until = budget(t) + more
    rounds = rounds_within(t, budget(t), until)
    assert budget(t + rounds) <= until
    assert rounds >= int(more * t / 4)  # and the promise is not idle: the slope is less than 4/t


@given(WINS, WINS, TIMES)
def test_an_index_that_is_not_positive_stays_so_up_to_the_budget_that_is_named(wins: int, losses: int, t: int) -> None:
    allowed = budget(t)
    assume(wins + losses > 0)
    assume(not may_be_better(wins, losses, allowed))
    until = hopeless_until(wins, losses, allowed)
    assert until >= allowed
    assert not may_be_better(wins, losses, until * (1 - 1e-9))


@given(WINS, WINS, st.floats(0.01, 0.99))
@settings(deadline=None)
def test_the_bound_on_the_evidence_is_below_it(wins: int, losses: int, q: float) -> None:
    assume(wins + losses > 0 and wins <= (wins + losses) * q)
    exact = evidence(float(wins), float(losses), -math.log1p(-q), math.log(q))
    assert evidence_at_least(float(wins), float(losses), q) <= exact * (1 + 1e-9) + 1e-6
