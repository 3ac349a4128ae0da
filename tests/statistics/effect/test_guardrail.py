"""The guardrail: false alarms over continuous looks, how soon a loss is found, and which coins it needs.

Every A/A test plays 2,000 runs and looks after every page. The stated error is 0.05. The evidence is a supermartingale
and not a martingale, so fewer alarms than that are expected; 0.05 itself is the limit that is asserted.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from saferank.errors import ArgumentError
from saferank.statistics.effect import Guardrail, new_comparison, with_page
from saferank.verbs import Floats
from tests.statistics.effect.simulated_pages import alarms, batches, ends, looks_of

RUNS, PAGES, SHARE, ERROR = 2000, 2500, 0.3, 0.05
Rates = Callable[[np.random.Generator, int], Floats]


def constant(rng: np.random.Generator, runs: int) -> Floats:
    return np.full((runs, PAGES), 0.3)


def alternating(rng: np.random.Generator, runs: int) -> Floats:
    """Production sends two rankings by turns, of which one gets three times the clicks."""
    return np.broadcast_to(np.where(np.arange(PAGES) % 2 == 0, 0.2, 0.6), (runs, PAGES))


def churning(rng: np.random.Generator, runs: int) -> Floats:
    """Another base every 50 pages, with a click rate of its own between 5 % and 95 %."""
    return np.repeat(rng.uniform(0.05, 0.95, (runs, PAGES // 50)), 50, axis=1)


@pytest.mark.parametrize("rates", [constant, alternating, churning])
def test_false_alarms_in_a_a_runs(rates: Rates) -> None:
    stopped = coloured = 0
    for size, rng in batches(RUNS, 100, seed=21):
        held_out = rng.random((size, PAGES)) < SHARE
        looks = looks_of(held_out, (rng.random((size, PAGES)) < rates(rng, size)).astype(float), SHARE)
        low, high = ends(looks, ERROR)
        stopped += int(alarms(looks, 0.0, ERROR).any(axis=1).sum())
        coloured += int(((low > 0) | (high < 0)).any(axis=1).sum())
    assert stopped <= ERROR * RUNS
    assert coloured <= ERROR * RUNS


def test_false_alarms_with_sessions_of_several_views() -> None:
    """Sessions view one to four times, in a mixed order with others. Everyone is of a kind of their own (5 % to
    75 %). Views of a session are in its arm; the first one counts."""
    stopped, views = 0, PAGES
    for size, rng in batches(RUNS, 100, seed=22):
        session = np.sort(rng.integers(0, views // 2, (size, views)) + rng.integers(0, 40, (size, views)), axis=1)
        session = np.take_along_axis(session, np.argsort(np.arange(views) + rng.integers(0, 30, (size, views))), 1)
        held_out_by, kind = rng.random((size, views)) < SHARE, rng.uniform(0.05, 0.75, (size, views))
        for run in range(size):
            first = np.sort(np.unique(session[run], return_index=True)[1])
            who = session[run, first]
            clicked = (rng.random(len(first)) < kind[run, who])[None].astype(float)
            stopped += bool(alarms(looks_of(held_out_by[run, who][None], clicked, SHARE), 0.0, ERROR).any())
    assert stopped <= ERROR * RUNS


def test_false_alarms_in_clicks_per_page_with_a_share_that_changes() -> None:
    stopped, share = 0, np.where(np.arange(PAGES) < 1000, 0.3, 0.05)
    for size, rng in batches(RUNS, 100, seed=23):
        held_out = rng.random((size, PAGES)) < share
        clicks = rng.binomial(5, np.where(np.arange(PAGES) < 1000, 0.1, 0.3), (size, PAGES)).astype(float)
        stopped += int(alarms(looks_of(held_out, clicks, share, 5.0), 0.0, ERROR, 5.0).any(axis=1).sum())
    assert stopped <= ERROR * RUNS


def test_a_loss_of_exactly_the_accepted_drop_is_an_a_a_run_too() -> None:
    stopped = 0
    for size, rng in batches(RUNS, 100, seed=24):
        held_out = rng.random((size, PAGES)) < SHARE
        clicked = rng.random((size, PAGES)) < np.where(held_out, 0.5, 0.45)
        stopped += int(alarms(looks_of(held_out, clicked.astype(float), SHARE), 0.1, ERROR).any(axis=1).sum())
    assert stopped <= ERROR * RUNS


def test_a_fixed_sample_interval_would_alarm_in_a_fifth_of_the_runs() -> None:
    """The same looks with the usual 1.96 standard errors, from the 200th page on: what the guardrail is there for."""
    size, rng = 300, np.random.default_rng(25)
    held_out = rng.random((size, PAGES)) < SHARE
    clicked = (rng.random((size, PAGES)) < 0.3).astype(float)
    pages, clicks = np.cumsum(held_out, 1), np.cumsum(clicked * held_out, 1)
    others, their_clicks = np.cumsum(~held_out, 1), np.cumsum(clicked * ~held_out, 1)
    late = np.s_[:, 200:]
    p, q = (clicks / np.maximum(pages, 1))[late], (their_clicks / np.maximum(others, 1))[late]
    spread = np.sqrt(p * (1 - p) / pages[late] + q * (1 - q) / others[late])
    assert (np.abs(p - q) > 1.96 * spread).any(axis=1).mean() > 0.2


def fixed_sample_pages(rates: tuple[float, float], share: float, error: float, power: float) -> float:
    """Pages of a one-sided test of two proportions with this error and power."""
    (p, q), z = rates, norm.isf(error) + norm.ppf(power)
    return float(z**2 * (p * (1 - p) / share + q * (1 - q) / (1 - share)) / (p - q) ** 2)


def test_a_drop_of_5_percent_is_found_within_two_and_a_half_times_the_pages_of_a_fixed_sample_test() -> None:
    """30 % click-through, 10 % holdout, error 0.05, power 0.8: a fixed-sample test needs 63,925 pages. In 120 runs the
    guardrail finds the drop within 2.5 times as many in at least 80 %; with a true power of 0.89, fewer than 96 of 120
    would have probability 0.002."""
    pages, found = int(2.5 * fixed_sample_pages((0.3, 0.285), 0.1, 0.05, 0.8)), 0
    for size, rng in batches(120, 5, seed=26):
        held_out = rng.random((size, pages)) < 0.1
        clicked = rng.random((size, pages)) < np.where(held_out, 0.3, 0.285)
        looks = looks_of(held_out, clicked.astype(float), 0.1)
        found += int(alarms(looks, 0.0, 0.05).any(axis=1).sum())
    assert found >= 96


def test_one_coin_for_all_pages_of_a_session_is_not_enough() -> None:
    """Sessions that are counted 100 times in one arm, each with a click rate of its own: the pages of an arm are alike,
    and the guardrail stops A/A runs far more often than stated. So every counted page needs a coin of its own."""
    rng, runs, sessions = np.random.default_rng(27), 200, 50
    who = rng.permuted(np.tile(np.repeat(np.arange(sessions), 100), (runs, 1)), axis=1)
    kind = np.take_along_axis(rng.choice([0.05, 0.95], (runs, sessions)), who, 1)
    clicked = (rng.random(kind.shape) < kind).astype(float)
    by_session = np.take_along_axis(rng.random((runs, sessions)) < 0.2, who, 1)
    by_page = rng.random(kind.shape) < 0.2
    assert alarms(looks_of(by_session, clicked, 0.2), 0.0, ERROR).any(axis=1).mean() > 0.2
    assert alarms(looks_of(by_page, clicked, 0.2), 0.0, ERROR).any(axis=1).mean() <= ERROR


def test_the_guardrail_on_a_fold() -> None:
    rng, state, rule = np.random.default_rng(28), new_comparison(), Guardrail(drop=0.03, error=0.01)
    stopped_after = None
    for number in range(20_000):
        served = bool(rng.random() >= 0.2)
        state = with_page(state, served=served, outcome=float(rng.random() < (0.2 if served else 0.4)), share=0.2)
        if number % 50 == 0 and stopped_after is None and rule.stopped(state):
            stopped_after = number
    assert stopped_after is not None and 100 < stopped_after < 2500
    assert rule.log_evidence(state) > -math.log(rule.error)
    assert not Guardrail(drop=0.6, error=0.01).stopped(state)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drop": 1.0}, "drop: found 1, expected a share from 0"),
        ({"drop": -0.1}, "drop: found -0.1"),
        ({"error": 0.0}, "error: found 0, expected a probability"),
        ({"most": 0.0}, "most: found 0"),
    ],
)
def test_settings_that_cannot_be_used(given: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Guardrail(**{"drop": 0.03, "error": 0.01, **given})
