"""Views that are kept: as long as they are useful, and not too many."""

import numpy as np

from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.view import View, Views, digest_of, pack_catalogue, unpack_catalogue
from tests.service.knowledge.worlds import World

ITEMS = ["a", "b", "c", "d", "x"]


def knowledge() -> Knowledge:
    return Knowledge(Terms("kl-ucb-br", "paper:1e-5", 1000, 0, 0), 3, ITEMS)


def test_a_view_is_kept_until_its_context_is_put_away_or_certificates_change() -> None:
    views, known, lists = Views(), knowledge(), (ITEMS[:4], ["x"])
    first, other = views.view(1, known, b"1", lists, 3), views.view(2, known, b"1", lists, 3)
    assert views.view(1, known, b"1", lists, 3) is first
    assert views.view(1, known, b"1", lists, 2) is not first
    views.forget(1)
    assert len(views) == 1
    assert views.view(1, known, b"1", lists, 3) is not first
    assert views.view(2, known, b"1", lists, 3) is other
    known.certified = Certified([(1, 0)])
    assert views.view(2, known, b"1", lists, 3) is not other


def test_a_view_with_items_of_its_own_is_made_again_when_something_was_learnt() -> None:
    views, known, lists = Views(), knowledge(), (ITEMS[:4], ["new"])
    first = views.view(1, known, b"1", lists, 3)
    assert "new" not in known.index and views.view(1, known, b"1", lists, 3) is first
    known.folds += 1
    assert views.view(1, known, b"1", lists, 3) is not first


def test_only_the_newest_views_are_kept() -> None:
    views, known = Views(), knowledge()
    for number in range(600):
        views.view(number, known, b"1", (ITEMS[:4], ["x"]), 3)
    assert len(views) == 512


def tried(view: View, pages: int) -> set[str]:
    """Items beyond production's six that pages compare."""
    random = np.random.default_rng(0)
    rows = [view.page(random.bytes(32)).row for _ in range(pages)]
    return {item for row in rows for item in row} - set(view.leader)


def test_untried_items_are_tried_in_the_order_of_the_call() -> None:
    """Not in the order in which the context first saw them; and a base ranking's own rest comes before candidates."""
    items = [f"i{number}" for number in range(30)]
    known = Knowledge(Terms("safe-draw", "anytime:1e-5", 1000, 0, 0), 6, items)
    assert tried(View(known, items[:6], items[6:], 6), 60) == {"i6", "i7", "i8"}
    assert tried(View(known, items[:6], items[:5:-1], 6), 60) == {"i29", "i28", "i27"}
    assert tried(View(known, [*items[:6], "i20", "new"], items[6:], 6), 60) == {"i20", "new", "i6"}
    assert tried(View(known, items[:6], items[6:], 6), 60) == {"i6", "i7", "i8"}, "a call leaves no trace"


def test_a_page_comes_again_from_what_its_record_names() -> None:
    """Its record has the digest of its call's lists, in their order, and its coins."""
    world = World("safe-draw", 30, 6, seed=3)
    for number in range(4):
        world.dice.shuffle(world.base)
        world.visit(40)
        lists = list(world.base[:6]), world.dice.sample(world.base[6:], 24)
        again = unpack_catalogue(pack_catalogue(lists))
        assert digest_of(again) == digest_of(lists) != digest_of((lists[0], sorted(lists[1])))
        coins = [bytes([number, page]) * 16 for page in range(20)]
        one, other = View(world.knowledge, *lists, 6), View(world.knowledge, *again, 6)
        assert [one.page(some) for some in coins] == [other.page(some) for some in coins]
