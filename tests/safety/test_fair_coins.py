"""Which users make comparisons fair coins between equally attractive items, and which do not."""

import numpy as np
import pytest

from saferank.click_models import CCM, CM, DBN, DCM, PBM, UBM
from saferank.randomness import stream
from saferank.verbs import click

PAGES = 20_000
EQUAL = np.array([0.5, 0.5])

FAIR = [
    PBM(EQUAL, np.array([0.9, 0.4])),
    CM(EQUAL),
    DCM(EQUAL, np.array([0.3, 0.8])),
    UBM(EQUAL, np.array([[0.9, 0.0], [0.7, 0.3]])),
    CCM(EQUAL, 0.9, 0.7, 0.2),
    DBN(EQUAL, np.array([0.6, 0.6]), 0.9),
]


def comparisons(model: object) -> tuple[int, int]:
    """Of two items in random order: how often item 1 alone was clicked, and how often one alone was."""
    rng, coins, clicks = stream(3, "users"), np.random.default_rng(3), np.zeros(2, np.int64)
    won = informative = 0
    for _ in range(PAGES):
        shown = coins.permutation(2).astype(np.uint32)
        click(model, shown, rng, clicks)
        if clicks.sum() == 1:
            informative += 1
            won += int(shown[int(np.argmax(clicks))] == 1)
    return won, informative


@pytest.mark.parametrize("model", FAIR, ids=lambda model: type(model).__name__)
def test_equally_attractive_items_win_equally_often(model: object) -> None:
    """Within five standard errors: fails by chance with probability below 1e-6 a model; the seed is fixed."""
    won, informative = comparisons(model)
    assert abs(won - informative / 2) < 5 * np.sqrt(informative) / 2


def test_an_item_that_satisfies_wins_without_being_more_attractive() -> None:
    """0.735 of 1.245 comparisons a pair of pages, as in docs/algorithms/safety.md; five standard errors."""
    won, informative = comparisons(DBN(np.array([0.50, 0.49]), np.array([0.0, 1.0]), 1.0))
    share = 0.735 / 1.245
    assert abs(won - informative * share) < 5 * np.sqrt(informative * share * (1 - share))
    assert won > informative / 2 + 5 * np.sqrt(informative) / 2
