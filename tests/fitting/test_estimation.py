"""Estimates equal hand computation, and a literal transcription of the formulas, to 1e-12."""

import os
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.click_models import CCM, DBN
from saferank.fitting import ESTIMATORS, estimator
from saferank.fitting.coins import coins_of, model_of, sizes
from saferank.fitting.estimation import expected_counts
from tests.fitting.planted_pages import expanded, log_of, random_pages
from tests.reference.users import fitting as reference

FITS = """
from tests.fitting.planted_pages import log_of, random_pages
from saferank.fitting import ESTIMATORS
from saferank.fitting.coins import coins_of
log = log_of([page for page in random_pages(2, 6, 5, 15) if sum(page[1]) < 2], 6, 5)
for name, fit in ESTIMATORS.items():
    fitted = fit(log, 5)
    print(name, *map(float.hex, coins_of(fitted.model).tolist() + fitted.log_likelihoods.tolist()))
"""

EVERY = pytest.mark.parametrize("name", ESTIMATORS)


def keys(model: Any, n_pairs: int, n_positions: int) -> list[Hashable]:
    """The reference's name of every coin, in our order."""
    pairs: list[Hashable] = [("attraction", pair) for pair in range(n_pairs)]
    others: dict[str, list[Hashable]] = {
        "PBM": [("examination", k) for k in range(n_positions)],
        "CM": [],
        "DCM": [("continuation", k) for k in range(n_positions)],
        "UBM": [("examination", r, last) for r in range(n_positions) for last in range(r + 1)],
        "DBN": [*(("satisfaction", pair) for pair in range(n_pairs)), "continuation"],
        "CCM": ["no_click", "nonrelevant", "relevant"],
    }
    return pairs + others[type(model).__name__]


def transcribed(name: str, pages: list[reference.Page], iterations: int) -> reference.Values:
    if name in ("cm", "dcm"):
        return {"cm": reference.cm, "dcm": reference.dcm}[name](pages)
    return reference.em(pages, iterations, getattr(reference, f"{name}_page"))


@EVERY
@pytest.mark.parametrize("iterations", [1, 2, 50])
def test_estimates_equal_the_transcription(name: str, iterations: int) -> None:
    pages = random_pages(seed=iterations, n_pairs=6, n_positions=5, count=12)
    fitted = ESTIMATORS[name](log_of(pages, n_pairs=6, n_positions=5), iterations)
    expected = transcribed(name, expanded(pages), iterations)
    wanted = [expected[key] for key in keys(fitted.model, 6, 5)]
    np.testing.assert_allclose(coins_of(fitted.model), wanted, rtol=0, atol=1e-12)
    assert fitted.iterations == (1 if name in ("cm", "dcm") else iterations)


@EVERY
def test_a_weight_is_a_repetition(name: str) -> None:
    pages = random_pages(seed=3, n_pairs=6, n_positions=5, count=9)
    once = [(items, clicks, 1) for items, clicks in expanded(pages)]
    short, long = (ESTIMATORS[name](log_of(rows, 6, 5), 20) for rows in (pages, once))
    np.testing.assert_allclose(coins_of(short.model), coins_of(long.model), rtol=0, atol=1e-12)
    np.testing.assert_allclose(short.log_likelihoods, long.log_likelihoods, rtol=1e-12)


def test_cm_by_hand() -> None:
    """Item 0: looked at 5 times, clicked 2. Item 1: looked at 3 times (not below a click), clicked 1. Item 2: 2, 0."""
    log = log_of([([0, 1, 2], [1, 0, 1], 2), ([0, 1, 2], [0, 0, 0], 2), ([0, 1, 2], [0, 1, 0], 1)], 3)
    assert ESTIMATORS["cm"](log).model.attraction.tolist() == [(1 + 2) / (2 + 5), (1 + 1) / (2 + 3), (1 + 0) / (2 + 2)]


def test_dcm_by_hand() -> None:
    """The first page has its last click at 3, the second none, the third its last (and only) one at 2."""
    log = log_of([([0, 1, 2], [1, 0, 1], 2), ([0, 1, 2], [0, 0, 0], 2), ([0, 1, 2], [0, 1, 0], 1)], 3)
    fitted = ESTIMATORS["dcm"](log)
    assert fitted.model.attraction.tolist() == [(1 + 2) / (2 + 5), (1 + 1) / (2 + 5), (1 + 2) / (2 + 4)]
    assert fitted.model.continuation.tolist() == [(1 + 2) / (2 + 2), (1 + 0) / (2 + 1), (1 + 0) / (2 + 2)]


def test_pbm_by_hand() -> None:
    """From 1/2 a position without a click adds (1/2)(1/2) / (3/4) = 1/3 to both numerators."""
    log = log_of([([0, 1], [1, 0], 3), ([1, 0], [0, 0], 1)], 2)
    model = ESTIMATORS["pbm"](log, 1).model
    assert model.attraction == pytest.approx([(1 + 3 + 1 / 3) / (2 + 4), (1 + 3 / 3 + 1 / 3) / (2 + 4)], abs=1e-15)
    assert model.examination == pytest.approx([(1 + 3 + 1 / 3) / (2 + 4), (1 + 3 / 3 + 1 / 3) / (2 + 4)], abs=1e-15)


def test_ubm_by_hand() -> None:
    """Position 2 was seen three times after a click at 1, once after none; each without a click: 1/3."""
    log = log_of([([0, 1], [1, 0], 3), ([1, 0], [0, 0], 1)], 2)
    examination = ESTIMATORS["ubm"](log, 1).model.examination
    assert examination[0, 0] == pytest.approx((1 + 3 + 1 / 3) / (2 + 4), abs=1e-15)
    assert examination[1] == pytest.approx([(1 + 1 / 3) / (2 + 1), (1 + 3 / 3) / (2 + 3)], abs=1e-15)
    assert examination[0, 1] == 0  # no click can be above the first position


def test_dbn_by_hand() -> None:
    """A click at 1 of 2, all coins 1/2: satisfied 1/2, gave up 1/4, looked on in vain 1/2 * 1/2 * 1/2 = 1/8.

    So satisfied 4/7, gave up 2/7, looked on 1/7; continuation is tossed with probability 3/7.
    """
    model = ESTIMATORS["dbn"](log_of([([0, 1], [1, 0], 1)], 2), 1).model
    assert model.attraction == pytest.approx([(1 + 1) / (2 + 1), 1 / (2 + 1 / 7)], abs=1e-15)
    assert model.satisfaction == pytest.approx([(1 + 4 / 7) / (2 + 1), 1 / 2], abs=1e-15)
    assert model.continuation == pytest.approx((1 + 1 / 7) / (2 + 3 / 7), abs=1e-15)


def test_ccm_by_hand() -> None:
    """A click at 1 of 2, all coins 1/2: relevant or not, what follows has probability 1/2 + 1/2 * 1/2 = 3/4.

    So relevant with 1/2; then gone on with (1/4) / (3/4) = 1/3: 1/6 for each kind.
    """
    model = ESTIMATORS["ccm"](log_of([([0, 1], [1, 0], 1)], 2), 1).model
    assert model.attraction == pytest.approx([(1 + 1 + 1 / 2) / (2 + 2), 1 / (2 + 1 / 3)], abs=1e-15)
    assert model.continuation_no_click == 1 / 2
    assert model.continuation_click_relevant == pytest.approx((1 + 1 / 6) / (2 + 1 / 2), abs=1e-15)
    assert model.continuation_click_nonrelevant == pytest.approx((1 + 1 / 6) / (2 + 1 / 2), abs=1e-15)


@pytest.mark.parametrize("kind", [DBN, CCM])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_e_step_equals_enumeration_of_the_hidden_states(kind: type, data: st.DataObject) -> None:
    clicks = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=5))
    n = len(clicks)
    n_coins = sum(sizes(kind, n, n).values())
    chance = st.floats(0.001, 0.999)
    model = model_of(kind, np.array(data.draw(st.lists(chance, min_size=n_coins, max_size=n_coins))), n, n)
    tally = expected_counts(model, log_of([(range(n), clicks, 3)], n).pages)
    counts, names = reference.Counts(), keys(model, n, n)
    values: reference.Values = dict(zip(names, coins_of(model).tolist(), strict=True))
    getattr(reference, f"{kind.__name__.lower()}_page")(values, list(range(n)), clicks, counts)
    np.testing.assert_allclose(tally.heads, [3 * (counts.numerator[key] - 1) for key in names], atol=1e-12)
    np.testing.assert_allclose(tally.tosses, [3 * (counts.denominator[key] - 2) for key in names], atol=1e-12)


@EVERY
def test_what_was_never_shown_is_an_even_chance(name: str) -> None:
    assert ESTIMATORS[name](log_of([([0, 1], [1, 0], 5)], n_pairs=3), 5).model.attraction[2] == 0.5


def test_only_em_values_have_a_ceiling() -> None:
    always = log_of([([0], [1], 10**9)], 1)
    assert ESTIMATORS["pbm"](always).model.attraction[0] == 1 - 1e-6
    assert ESTIMATORS["cm"](always).model.attraction[0] == (1 + 10**9) / (2 + 10**9)


def test_compiled_and_interpreted_fits_agree_to_the_last_digit() -> None:
    outputs = []
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": path}
        run = [sys.executable, "-c", FITS]
        outputs.append(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == len(ESTIMATORS)


def test_an_unknown_model_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="no estimation for click model 'pmb'; known ones: pbm, cm, dcm, dbn, ubm, ccm"
    ):
        estimator("pmb")
