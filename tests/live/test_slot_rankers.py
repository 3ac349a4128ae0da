"""A live ranker over a large catalogue: saved and loaded, items that come and go, explanations."""

import numpy as np

from saferank import Ranker


def ranker_after(pages: int) -> Ranker:
    ranker = Ranker("safe-draw", original=range(6), candidates=range(6, 80), rule="anytime:0.3", seed=5)
    return play(ranker, pages, np.random.default_rng(1))


def play(ranker: Ranker, pages: int, random: np.random.Generator) -> Ranker:
    for _ in range(pages):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if random.random() < 0.3])
    return ranker


def test_a_loaded_ranker_goes_on_as_the_saved_one_would() -> None:
    ranker = ranker_after(2500)
    twin = Ranker.load(ranker.save())
    for one in (ranker, twin):
        play(one, 200, np.random.default_rng(2))
    assert ranker.leader == twin.leader
    assert ranker.rank().items == twin.rank().items


def test_items_come_and_go_and_it_can_explain_itself() -> None:
    ranker = ranker_after(300)
    gone = ranker.leader[0]
    ranker.remove(gone)
    ranker.add("new", gone)
    play(ranker, 100, np.random.default_rng(3))
    assert gone in ranker.items
    assert "new" in ranker.items
    page = ranker.rank()
    assert len(page.items) == 6
    assert str(ranker.explain(page))
