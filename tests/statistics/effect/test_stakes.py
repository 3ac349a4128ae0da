"""The inequality behind the evidence, and the lead that it needs."""

import math

import numpy as np
import pytest

from saferank.statistics.effect.stakes import log_evidence, needed_lead, stakes_for


@pytest.mark.parametrize("fall", [0.5, 1.0, 5.0, 10.0, 100.0])
def test_a_bet_never_pays_more_than_a_fair_one(fall: float) -> None:
    """exp(a r - cost(a) r^2) <= 1 + a r for every r >= -c: what the proof rests on."""
    stakes = stakes_for(fall)
    r = np.concatenate([np.linspace(-fall, fall, 4001), np.geomspace(fall, 50 * fall, 500)])[:, None]
    assert np.all(np.exp(stakes.stakes * r - stakes.costs * r * r) <= 1 + stakes.stakes * r + 1e-12)


@pytest.mark.parametrize("fall", [0.5, 1.0, 100.0])
def test_weights_sum_to_one_and_stakes_cannot_ruin(fall: float) -> None:
    stakes = stakes_for(fall)
    assert np.exp(stakes.log_weights).sum() == pytest.approx(1)
    assert len(stakes.stakes) >= 7 and stakes.stakes.max() * fall < 1


@pytest.mark.parametrize("error", [0.05, 1e-3, 1e-9])
@pytest.mark.parametrize("variance", [0.0, 1.0, 300.0, 1e7])
def test_the_needed_lead_is_where_the_evidence_suffices(variance: float, error: float) -> None:
    stakes = stakes_for(0.5)
    lead = needed_lead(stakes, variance, error)
    assert float(log_evidence(stakes, lead, variance)) == pytest.approx(-math.log(error))
    assert float(log_evidence(stakes, 0.999 * lead, variance)) < -math.log(error)


def test_the_needed_lead_is_concave_in_the_variance() -> None:
    leads = [needed_lead(stakes_for(1.0), float(v), 0.05) for v in np.arange(0, 4000, 50)]
    assert np.all(np.diff(leads, 2) <= 1e-9)


def test_arrays_are_taken_together() -> None:
    stakes, lead, variance = stakes_for(1.0), np.array([0.0, 5.0, 50.0]), np.array([3.0, 3.0, 900.0])
    singly = [float(log_evidence(stakes, a, b)) for a, b in zip(lead, variance, strict=True)]
    assert log_evidence(stakes, lead, variance).tolist() == pytest.approx(singly)
