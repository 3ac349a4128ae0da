"""Standard errors: right where theory knows them, the same for the same seed, never blind."""

from math import sqrt

import numpy as np
import pytest

from saferank.fitting import ESTIMATORS
from saferank.fitting.bootstrap import replicates, standard_errors
from saferank.fitting.coins import coins_of
from tests.fitting.planted_pages import log_of, random_pages

EVERY = pytest.mark.parametrize("name", ESTIMATORS)


def test_of_a_single_coin_they_are_the_binomial_ones() -> None:
    """300 clicks of 1,000: sqrt(0.3 * 0.7 / 1,000). With 400 replicates 4 of their errors are 14 %."""
    log = log_of([([0], [1], 300), ([0], [0], 700)], 1)
    error = standard_errors(ESTIMATORS["cm"], log, ESTIMATORS["cm"](log), n=400).attraction[0]
    assert error == pytest.approx(sqrt(0.3 * 0.7 / 1000), rel=0.14)


def test_a_coin_that_never_fell_on_heads_is_not_known_for_certain() -> None:
    """Shown 8 times without a click: every replicate says about 1/10; Beta(1, 9) has deviation sqrt(0.09 / 11)."""
    log = log_of([([0], [0], 8)], 1)
    error = standard_errors(ESTIMATORS["cm"], log, ESTIMATORS["cm"](log)).attraction[0]
    assert error == pytest.approx(sqrt(0.1 * 0.9 / 11))


@EVERY
def test_they_have_the_shape_of_the_model(name: str) -> None:
    log = log_of(random_pages(1, 5, 4, 12), 5, 4)
    fitted = ESTIMATORS[name](log, 3)
    errors = standard_errors(ESTIMATORS[name], log, fitted, iterations=3, n=5)
    assert type(errors) is type(fitted.model)
    assert (coins_of(errors) > 0).all()
    assert [np.shape(field) for field in errors] == [np.shape(field) for field in fitted.model]


def test_a_seed_draws_the_same_logs() -> None:
    log = log_of(random_pages(1, 5, 4, 12), 5, 4)
    first, again, other = (
        [model.attraction.tolist() for model in replicates(ESTIMATORS["cm"], log, 1, 4, seed)] for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other
