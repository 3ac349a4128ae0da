"""safe-draw equals, page by page, what somebody wrote who had only the words of its documentation."""

import random
from typing import Any

import pytest

from saferank import Ranker
from saferank.randomness import stream
from tests.reference.safe_draw_from_words import SafeDraw


@pytest.mark.parametrize(
    ("size", "trust", "lifetime", "pages"),
    [
        ((5, 8), 0.6, None, 600),
        ((5, 8), 0.977, 150, 500),
        ((3, 3), 0.9, 100, 300),
        ((4, 9), 0.6, None, 400),
        ((10, 20), 0.977, None, 2000),
        ((10, 20), 0.6, 500, 3000),
    ],
    ids=str,
)
def test_it_shows_the_same_pages(size: tuple[int, int], trust: float, lifetime: int | None, pages: int) -> None:
    n_positions, n_items = size
    names = range(n_items)
    ranker = Ranker(
        "safe-draw",
        original=names[:n_positions],
        candidates=names[n_positions:],
        rule="anytime:0.01",
        seed=7,
        trust=trust,
        lifetime=lifetime,
    )
    words = stream(7, "ranker").tolist()
    other: Any = SafeDraw(n_positions, n_items, 0.01, words, trust, lifetime)  # type: ignore[no-untyped-call]
    dice = random.Random(11)
    for number in range(pages):
        page = ranker.rank()
        shown = [int(item) for item in page.items]
        assert tuple(shown) == other.rank(), f"page {number + 1}"
        clicked = [item for item in shown if dice.random() < 0.02 + 0.7 * (item / n_items) ** 2]
        ranker.feedback(page, clicked=clicked)
        other.feedback(clicked)
    assert other.given > 0
