"""Intervals: coverage at all looks together, drifting effects, relative differences, the +32-point trial."""

import math

import numpy as np
import pytest

from saferank.errors import ArgumentError
from saferank.statistics.effect import ArmComparison, difference, new_comparison, relative_difference, with_page
from saferank.verbs import Floats
from tests.statistics.effect.simulated_pages import batches, ends, looks_of


def test_an_effect_that_changes_is_covered_at_every_look() -> None:
    """The served gain 8 points, then lose 8, by turns of 400 pages. The mean so far is outside at some look in at most
    5 % of 500 runs; at the true 5 % more than 40 of 500 has probability 0.001."""
    pages, missed = 3000, 0
    rate = np.full(pages, 0.4)
    gain = np.where(np.arange(pages) // 400 % 2 == 0, 0.08, -0.08)
    truth = np.cumsum(gain) / np.arange(1, pages + 1)
    for size, rng in batches(500, 125, seed=11):
        held_out = rng.random((size, pages)) < 0.2
        clicked = rng.random((size, pages)) < rate + np.where(held_out, 0, gain)
        low, high = ends(looks_of(held_out, clicked.astype(float), 0.2), 0.05)
        missed += int(((low > truth) | (truth > high)).any(axis=1).sum())
    assert missed <= 25


def state_of(n: int, rates: tuple[float, float], share: float, seed: int, most: int = 1) -> ArmComparison:
    """A fold of ``n`` pages; rates of holdout and served, by position."""
    rng, state = np.random.default_rng(seed), new_comparison()
    for _ in range(n):
        served = bool(rng.random() >= share)
        outcome = float(rng.binomial(most, rates[served]))
        state = with_page(state, served=served, outcome=outcome, share=share, most=most)
    return state


def test_differences_are_found_in_the_outcomes_unit() -> None:
    state = state_of(20_000, (0.3, 0.4), 0.2, seed=1)
    found = difference(state, 0.05)
    assert found.low > 0.06 and found.high < 0.14 and found.low <= 0.1 <= found.high
    ratio = relative_difference(state, 0.05)
    assert ratio.low > 0.18 and ratio.high < 0.5 and ratio.low <= 1 / 3 <= ratio.high
    assert difference(state, 1e-6).low < found.low < found.estimate < found.high < difference(state, 1e-6).high


def test_losses_are_found_relatively() -> None:
    state = state_of(20_000, (0.4, 0.3), 0.2, seed=2)
    found = relative_difference(state, 0.05)
    assert found.low <= -0.25 <= found.high and -0.4 < found.low < found.high < -0.1


def test_the_width_follows_the_variance_and_not_the_range() -> None:
    """With at most 10 clicks a page but 0.3 on average, the interval is at most 1.2 times as wide as for 0 and 1."""
    few = state_of(20_000, (0.3, 0.3), 0.2, seed=3)
    many = state_of(20_000, (0.03, 0.03), 0.2, seed=3, most=10)  # mean 0.3, variance 0.29 instead of 0.21
    narrow, wide = difference(few), difference(many, most=10)
    assert wide.high - wide.low < 1.2 * math.sqrt(0.29 / 0.21) * (narrow.high - narrow.low)


def test_without_pages_nothing_is_known() -> None:
    found = difference(new_comparison(), most=5)
    assert math.isnan(found.estimate) and (found.low, found.high) == (-5, 5)
    assert relative_difference(state_of(10, (0.0, 0.0), 0.5, seed=4))[1:] == (-1, math.inf)


@pytest.mark.parametrize("served", [True, False])
def test_one_arm_alone_is_no_estimate(served: bool) -> None:
    alone = with_page(new_comparison(), served=served, outcome=1.0, share=0.1)
    assert math.isnan(difference(alone).estimate)
    assert math.isnan(relative_difference(alone).estimate)
    both = with_page(alone, served=not served, outcome=1.0, share=0.1)
    assert -1 <= difference(both).estimate <= 1  # no page can be further apart
    assert relative_difference(both).estimate > -1


def test_ends_of_the_relative_difference_meet_at_one() -> None:
    """The two formulas on either side of ratio 1 give the same there, so the ends move continuously."""
    wide = relative_difference(state_of(400, (0.3, 0.3), 0.2, seed=5))
    assert -1 < wide.low < wide.estimate < wide.high


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1])
def test_errors_are_probabilities(error: float) -> None:
    with pytest.raises(ArgumentError, match="error: found"):
        difference(new_comparison(), error)


def trial(rng: np.random.Generator, sessions: int) -> tuple[ArmComparison, dict[bool, Floats]]:
    """Everybody clicks with probability 1/2, on the first view of the session; it has three views, and the base ranking
    changes with every view. Counted by the rule, and as before: every holdout page whose base is not that of the page
    before it, and of explored pages the first."""
    state, before = new_comparison(), {True: np.zeros(2), False: np.zeros(2)}
    for number in range(sessions):
        served, click = bool(rng.random() >= 0.2), float(rng.random() < 0.5)
        state = with_page(state, served=served, outcome=click, share=0.2)  # the first page; later ones in no arm
        for view in range(3):
            base_changed = view == 0 or (number + view) % 2 != (number + view - 1) % 2
            if view == 0 or (base_changed and not served):
                before[served] += (1, click if view == 0 else 0)
    return state, before


def test_the_trial_that_claimed_32_points_covers_zero() -> None:
    state, before = trial(np.random.default_rng(14), 3000)
    rates = {served: clicks / pages for served, (pages, clicks) in before.items()}
    spread = math.sqrt(sum(rate * (1 - rate) / before[arm][0] for arm, rate in rates.items()))
    old = rates[True] - rates[False]
    assert 0.30 < old < 0.36 and old - 1.96 * spread > 0.25  # the old counting: a third, and far from 0
    found = difference(state)
    assert found.low <= 0 <= found.high and found.low > -0.1 and found.high < 0.1
