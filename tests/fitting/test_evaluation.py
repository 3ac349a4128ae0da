"""Perplexity and click-through are what their definitions say, on pages of all lengths."""

from itertools import product
from math import log2
from typing import Any

import numpy as np
import pytest

from saferank.click_models import CM
from saferank.fitting import ESTIMATORS
from saferank.fitting.evaluation import evaluate_model, log_likelihood
from tests.fitting.planted_pages import Page, log_of, random_pages
from tests.fitting.test_likelihood import random_model, transcribed

EVERY = pytest.mark.parametrize("name", ESTIMATORS)
PAGES = [page for page in random_pages(4, n_pairs=6, n_positions=4, count=12) if sum(page[1]) < 2]


def probability(model: Any, items: list[int], seen: tuple[int, ...]) -> float:
    """Of the clicks down to len(seen), by enumeration of those below."""
    rest = product([0, 1], repeat=len(items) - len(seen))
    return sum(float(transcribed(model).probability_of(items, [*seen, *below])) for below in rest)


def bits(model: Any, page: Page, k: int) -> float:
    """-log2 P(what happened at k | clicks above k)."""
    items, clicks = list(page[0]), tuple(page[1])
    return -log2(probability(model, items, clicks[: k + 1]) / probability(model, items, clicks[:k]))


@EVERY
def test_perplexity_by_definition(name: str) -> None:
    model = random_model(name, 1, 6, 4)
    found = evaluate_model(model, log_of(PAGES, 6, 4).pages)
    everywhere = [(bits(model, page, k), page[2], k) for page in PAGES for k in range(len(page[0]))]
    for k in range(4):
        here = [(surprise, weight) for surprise, weight, position in everywhere if position == k]
        mean = sum(surprise * weight for surprise, weight in here) / sum(weight for _, weight in here)
        assert found.perplexities[k] == pytest.approx(2**mean, rel=1e-12)
    total = sum(surprise * weight for surprise, weight, _ in everywhere)
    assert found.perplexity == pytest.approx(2 ** (total / sum(weight for _, weight, _ in everywhere)), rel=1e-12)


@EVERY
def test_predicted_click_through_equals_enumeration(name: str) -> None:
    model = random_model(name, 2, 6, 4)
    found = evaluate_model(model, log_of(PAGES, 6, 4).pages)
    for k in range(4):
        pages = [(list(items), clicks, weight) for items, clicks, weight in PAGES if len(items) > k]
        shown = sum(weight for _, _, weight in pages)
        clicked = sum(
            weight * probability(model, items, (*above, 1))
            for items, _, weight in pages
            for above in product([0, 1], repeat=k)
        )
        assert found.predicted[k] == pytest.approx(clicked / shown, abs=1e-12)
        assert found.observed[k] == pytest.approx(sum(w * c[k] for _, c, w in pages) / shown, abs=1e-15)


@EVERY
def test_log_likelihood_is_that_of_a_page(name: str) -> None:
    model, pages = random_model(name, 3, 6, 4), log_of(PAGES, 6, 4).pages
    assert evaluate_model(model, pages).log_likelihood == log_likelihood(model, pages) / pages.weight.sum()
    assert evaluate_model(model, pages).impossible == 0


def test_what_cm_holds_for_impossible_is_counted() -> None:
    found = evaluate_model(CM(np.array([0.5, 0.25])), log_of([([0, 1], [1, 1], 3), ([0, 1], [1, 0], 5)], 2).pages)
    assert found.impossible == 3 / 8
    assert found.log_likelihood == -np.inf
    assert found.perplexity == np.inf
    assert found.perplexities.tolist() == [2, np.inf]


def test_positions_that_no_page_has_are_no_trouble() -> None:
    found = evaluate_model(CM(np.array([0.5])), log_of([([0], [1], 1)], 1, n_positions=3).pages)
    assert found.predicted.tolist() == [0.5, 0, 0]
    assert found.perplexities.tolist() == [2, 1, 1]
