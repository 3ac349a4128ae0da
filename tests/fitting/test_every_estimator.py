"""Planted users are found again: their parameters within four standard errors, their pages best by their own model."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from saferank._kernel import JIT
from saferank.click_models import DCM, PBM, UBM
from saferank.fitting import ESTIMATORS
from saferank.fitting.bootstrap import replicates, standard_errors
from saferank.fitting.coins import coins_of
from saferank.fitting.evaluation import log_likelihood
from saferank.verbs import Floats
from tests.fitting.planted_pages import Plant, clicked_by, log_of, plants
from tests.reference.users import click_models as reference

EVERY = pytest.mark.parametrize("name", ESTIMATORS)
compiled = pytest.mark.skipif(not JIT, reason="takes minutes when interpreted; its lines are covered by other tests")
ITERATIONS = {"ccm": 500}
"""CCM's two continuations after a click are told apart slowly; the others are at rest after 50."""


def identifiable(model: Any) -> Floats:
    """What clicks can tell: for PBM and UBM the products of attraction and examination, otherwise all parameters."""
    coins = coins_of(model)
    if isinstance(model, PBM | UBM):
        n_pairs = len(model.attraction)
        return np.outer(coins[:n_pairs], coins[n_pairs:]).ravel()
    return coins


@compiled
@EVERY
def test_parameters_are_recovered_within_four_standard_errors(name: str) -> None:
    """About 190 numbers in all, t-distributed with 99 degrees of freedom: a correct program fails on 2 % of seeds."""
    planted, fit, iterations = plants()[name], ESTIMATORS[name], ITERATIONS.get(name, 50)
    log = clicked_by(planted.model, planted.rankings, users=30_000, seed=1)
    fitted = fit(log, iterations).model
    drawn = np.array([identifiable(model) for model in replicates(fit, log, iterations, n=100, seed=0)])
    errors = np.maximum(drawn.std(axis=0, ddof=1), 1e-4)  # an attraction of 1 is estimated to one in 30,000
    away = np.abs(identifiable(fitted) - identifiable(planted.model)) / errors
    assert away.max() < 4
    assert np.mean(away**2) > 0.1  # errors that are much too large would hide anything; fails on 0.2 % of seeds


@compiled
@EVERY
def test_each_model_foresees_its_own_users_best(name: str) -> None:
    """UBM, DBN and DCM can imitate simpler users, and lose by the noise in the parameters they do not need.

    The closest, over 25 other seeds: PBM before UBM by 9.5 nats (standard deviation 5.4), CM before its
    rivals by 4.4 (1.1). So a correct program fails on about 4 % of seeds.
    """
    planted = plants()[name]
    seen, unseen = (
        clicked_by(planted.model, planted.rankings, users, seed) for users, seed in ((30_000, 1), (60_000, 2))
    )
    found = {model: log_likelihood(fit(seen, 300).model, unseen.pages) for model, fit in ESTIMATORS.items()}
    assert max(found, key=lambda model: found[model]) == name


def test_the_count_of_dcm_leans_as_documented() -> None:
    """Users who look on in vain below a click: its limit, from all click vectors, is off to a known side."""
    attraction, rankings = plants()["pbm"].model.attraction, plants()["pbm"].rankings
    planted = Plant(DCM(attraction, np.array([0.7, 0.6, 0.65, 0.5, 0.3])), rankings)
    limit = ESTIMATORS["dcm"](_all_pages(planted)).model
    assert (limit.attraction > attraction + 0.03).all()
    assert (limit.continuation < planted.model.continuation - 0.05).all()
    log = clicked_by(planted.model, rankings, users=5_000, seed=1)
    fitted = ESTIMATORS["dcm"](log)
    errors = coins_of(standard_errors(ESTIMATORS["dcm"], log, fitted, n=100))  # 12 of them: fails on 0.2 % of seeds
    assert (np.abs(coins_of(fitted.model) - coins_of(limit)) < 4 * errors).all()


def _all_pages(planted: Plant) -> Any:
    """Every page as often as a thousand million users bring it."""
    users = reference.DCM(planted.model.attraction.tolist(), planted.model.continuation.tolist())
    vectors = list(product([0, 1], repeat=5))
    pages = [(r, v, round(1e9 * users.probability_of(r, list(v)))) for r in planted.rankings for v in vectors]
    return log_of(pages, len(planted.model.attraction))
