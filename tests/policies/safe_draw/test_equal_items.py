"""Equal items through whole runs of safe-draw: certified no more often than alpha, and a mutant is caught.

A small version of the table of ``benchmarks/policies/equal_items.py``. Seeds are fixed, so the verdicts never change; a
policy that keeps its level would fail one of the eight first cases below with probability 1e-3 for a fresh seed.
"""

import pytest
from equal_draws import EXACT_IN_TWOS, MODELS, SLOTS, World, count, play

LOOP = getattr(play, "py_func", play)
"""The loop is interpreted: the verbs that it calls are compiled by other tests."""

SHORT = [(EXACT_IN_TWOS._replace(pages=250), 20), (SLOTS._replace(pages=400), 15)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("world", "runs"), SHORT, ids=["exact", "slots"])
def test_equal_items_keep_the_level(world: World, runs: int, model: str) -> None:
    found = count(world, model, 0.05, runs, loop=LOOP)
    assert found.keeps_its_level
    assert found.shares.mean() <= 0.05


@pytest.mark.parametrize("world", [EXACT_IN_TWOS, SLOTS], ids=["exact", "slots"])
def test_even_odds_for_uneven_draws_break_it(world: World) -> None:
    assert not count(world._replace(pages=600), "pbm", 0.05, 40, even=True, loop=LOOP).keeps_its_level
