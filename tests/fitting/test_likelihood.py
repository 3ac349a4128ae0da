"""The likelihood is exact, and EM climbs."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from saferank.click_models import CLICK_MODELS
from saferank.click_models.shapes import field_shapes
from saferank.fitting import ESTIMATORS
from saferank.fitting.coins import coins_of, model_of, sizes
from saferank.fitting.evaluation import log_likelihood
from tests.fitting.planted_pages import log_of, random_pages
from tests.reference.users import click_models as reference

EVERY = pytest.mark.parametrize("name", ESTIMATORS)


def random_model(name: str, seed: int, n_pairs: int, n_positions: int) -> Any:
    kind = CLICK_MODELS[name]
    coins = np.random.default_rng(seed).random(sum(sizes(kind, n_pairs, n_positions).values()))
    return model_of(kind, coins, n_pairs, n_positions)


def transcribed(model: Any) -> Any:
    shapes = field_shapes(type(model))
    return getattr(reference, type(model).__name__)(*(shapes[f].write(getattr(model, f)) for f in model._fields))


def chance(model: Any, items: list[int], clicks: tuple[int, ...]) -> float:
    return math.exp(log_likelihood(model, log_of([(items, clicks, 1)], len(model.attraction), 5).pages))


@EVERY
@pytest.mark.parametrize("length", [1, 2, 5])
def test_it_equals_the_probability_in_the_reference_and_sums_to_one(name: str, length: int) -> None:
    for seed in range(3):
        model, items = random_model(name, seed, 6, 5), [4, 1, 5, 0, 3][:length]
        chances = {clicks: chance(model, items, clicks) for clicks in product([0, 1], repeat=length)}
        for clicks, found in chances.items():
            assert found == pytest.approx(transcribed(model).probability_of(items, list(clicks)), abs=1e-14)
        assert sum(chances.values()) == pytest.approx(1, abs=1e-13)


@EVERY
def test_certainties_are_no_trouble(name: str) -> None:
    """All coins always fall on heads: the page is either certain or impossible."""
    kind = CLICK_MODELS[name]
    model = model_of(kind, np.ones(sum(sizes(kind, 3, 3).values())), 3, 3)
    for clicks in product([0, 1], repeat=3):
        expected = transcribed(model).probability_of([2, 0, 1], list(clicks))
        found = log_likelihood(model, log_of([([2, 0, 1], clicks, 1)], 3).pages)
        assert found == (0 if expected == 1 else -math.inf)


@EVERY
def test_weights_multiply(name: str) -> None:
    model, items, clicks = random_model(name, 5, 4, 3), [3, 0, 2], (0, 1, 0)
    one, seven = (log_likelihood(model, log_of([(items, clicks, weight)], 4).pages) for weight in (1, 7))
    assert seven == pytest.approx(7 * one, rel=1e-14)


@pytest.mark.parametrize("name", ["pbm", "ubm", "dbn", "ccm"])
@pytest.mark.parametrize("seed", range(4))
def test_the_penalised_likelihood_never_falls(name: str, seed: int) -> None:
    """EM climbs log P(pages) + sum of log c (1 - c): the Beta(2, 2) prior behind (1 + heads) / (2 + tosses)."""
    log = log_of(random_pages(seed, n_pairs=8, n_positions=6, count=40), 8, 6)
    objective = []
    for iterations in range(1, 40):
        model = ESTIMATORS[name](log, iterations).model
        coins = coins_of(model)
        objective.append(log_likelihood(model, log.pages) + float(np.log(coins * (1 - coins)).sum()))
    assert np.diff(objective).min() > -1e-10


@EVERY
def test_fits_report_their_likelihood_after_every_iteration(name: str) -> None:
    log = log_of([page for page in random_pages(1, 8, 6, 30) if sum(page[1]) < 2], 8, 6)
    fitted = ESTIMATORS[name](log, 7)
    assert fitted.log_likelihoods[-1] == log_likelihood(fitted.model, log.pages)
    if fitted.iterations == 1:
        assert fitted.last_change is None
    else:
        assert fitted.log_likelihoods[2] == ESTIMATORS[name](log, 3).log_likelihoods[-1]
        assert fitted.last_change == fitted.log_likelihoods[-1] - fitted.log_likelihoods[-2]
