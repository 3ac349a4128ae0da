"""Which items were not seen for the longest time."""

from saferank.live.replay import ISSUED, LEARNT, Pages, new_pages
from saferank.service.knowledge.sights import Sights


def pages(*rows: list[int] | None) -> Pages:
    """Pages of two shown items and a hidden one; None: without clicks."""
    laid = new_pages(len(rows), 2, 4)
    for number, row in enumerate(rows):
        laid.operation[number] = ISSUED if row is None else LEARNT
        laid.places[number] = len(row or ())
        laid.ranking[number, : len(row or ())] = row or ()
    return laid


LOG = pages([0, 1, 2], None, [3, 1, 4], [2, 3, 4])


def test_items_that_were_not_seen_for_the_longest_time_come_first() -> None:
    sights = Sights(6)
    sights.note(LOG, 0, 4)
    assert sights.oldest_first() == [5, 0, 1, 2, 3, 4]
    more = sights.with_more(1)
    assert more.oldest_first() == [5, 6, 0, 1, 2, 3, 4] and len(sights.oldest_first()) == 6
    fewer = more.without([5, 0])
    assert fewer.oldest_first() == [4, 0, 1, 2, 3]  # 6 is number 4 now
    assert (more.pages_since, fewer.pages_since) == (None, 0)
    fewer.note(pages([0, 1, 4]), 0, 1)
    assert (fewer.oldest_first(), fewer.pages_since) == ([2, 3, 0, 1, 4], 1)


def test_batches_and_restarts_make_no_difference() -> None:
    whole, cut = Sights(6), Sights(6)
    whole.note(LOG, 0, 4)
    for number in range(4):
        cut.note(LOG, number, number + 1)
        cut = Sights(6, cut.packed())
    assert whole.packed() == cut.packed()
    for sights in (whole.with_more(2), cut.with_more(2)):
        sights.note(pages([7, 0, 5]), 0, 1)
        assert sights.oldest_first() == [6, 1, 2, 3, 4, 0, 5, 7]
        assert sights.without([6]).packed() == [0, 0, 1, 2, 3, 4, 0, 5, 6]
