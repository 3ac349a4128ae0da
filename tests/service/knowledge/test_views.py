"""Views that are kept: as long as they are useful, and no more than there is memory for."""

from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.views import Views

ITEMS = ["a", "b", "c", "d", "x"]


def knowledge() -> Knowledge:
    return Knowledge(Terms("kl-ucb-br", "paper:1e-5", 1000, 0, 0), 3, ITEMS)


def test_a_view_is_kept_until_its_context_is_put_away() -> None:
    views, known = Views(10**9), knowledge()
    first = views.view(1, known, b"1", (ITEMS[:4], ["x"]), now=0)
    other = views.view(2, known, b"1", (ITEMS[:4], ["x"]), now=0)
    assert views.view(1, known, b"1", (ITEMS[:4], ["x"]), now=9000) is first
    views.forget(1)
    assert len(views) == 1
    assert views.view(1, known, b"1", (ITEMS[:4], ["x"]), now=9000) is not first
    assert views.view(2, known, b"1", (ITEMS[:4], ["x"]), now=9000) is other


def test_views_take_no_more_memory_than_they_may() -> None:
    views, known = Views(350_000), knowledge()
    for number in range(5):
        views.view(number, known, b"1", (ITEMS[:4], ["x"]), now=0)
    assert len(views) == 3 and views.memory <= 350_000
    for number in range(5):
        views.forget(number)
    assert (len(views), views.memory) == (0, 0)


def test_a_view_with_tables_of_its_own_takes_more() -> None:
    views, known = Views(10**9), knowledge()
    views.view(1, known, b"1", (ITEMS[:4], ["x"]), now=0)
    shared = views.memory
    views.view(1, known, b"2", (ITEMS[:4], ["new"]), now=0)
    assert views.memory > 2 * shared


def test_views_that_would_be_made_again_are_dropped() -> None:
    """They keep tables that the knowledge has given up."""
    views, known = Views(10**9), knowledge()
    views.view(1, known, b"1", (ITEMS[:4], ["x"]), now=0)
    known.know([*ITEMS, "y"])
    views.view(1, known, b"2", (ITEMS[:4], ["y"]), now=500)
    assert len(views) == 2  # the first is less than a second old
    known.know([*ITEMS, "y", "z"])
    views.view(1, known, b"3", (ITEMS[:4], ["z"]), now=3000)
    assert len(views) == 1
