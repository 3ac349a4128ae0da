"""What shadow pages tell: production's page was shown, and the policy's page is in the record beside it.

A shadow page is counted when its window closes. The counts say how far the policy's pages are from production's, and
how many clicks are known of them although nobody saw them. The policy's page does not depend on the clicks: its coins
are drawn before. So on the pages where the two agree, the clicks are those that the policy's page would have got. On
the others they are known only as far as a click model says that they do not depend on what differs.

The policy's exact chance of drawing production's page would do better than asking whether it did. It is not in the
record: pages that are not safe are drawn again, and by how much that raises the others depends on every page there is.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from saferank.store.contract import PageRow
from saferank.store.page_record import PageRecord, unpacked


class ShadowCounts(NamedTuple):
    """Sums over closed shadow pages. Places count from 0; a click is counted at most once a place."""

    pages: int = 0
    same: int = 0  # the policy chose production's page
    clicks: int = 0  # on production's pages, all of them
    same_clicks: int = 0  # on those that the policy chose too
    exchanged_pairs: int = 0  # see exchanged_pairs()
    new_items: int = 0  # items of the policy's pages that production's did not show
    places: int = 0  # of differing pages: all places ...
    top_places: int = 0  # ... those above the first one that differs ...
    top_clicks: int = 0  # ... and the clicks on them
    kept_places: int = 0  # of differing pages: places with the same item on both
    kept_clicks: int = 0


def with_page(counts: ShadowCounts, page: PageRow) -> ShadowCounts:
    """The counts with one more closed page of the shadow arm."""
    record = unpacked(page.record)
    if len(record.row) < record.k:  # it does not say what the policy chose
        return counts
    return total((counts, _counts_of(record, page.clicks)))


def total(counts: Iterable[ShadowCounts]) -> ShadowCounts:
    """The sums of several counts."""
    return ShadowCounts(*map(sum, zip(ShadowCounts(), *counts, strict=True)))


def _counts_of(record: PageRecord, clicks: int) -> ShadowCounts:
    shown, chosen, clicked = record.shown, record.row[: record.k], clicks.bit_count()
    if shown == chosen:
        return ShadowCounts(pages=1, same=1, clicks=clicked, same_clicks=clicked)
    kept = [ours == theirs for ours, theirs in zip(shown, chosen, strict=True)]
    kept_bits = sum(1 << place for place, is_kept in enumerate(kept) if is_kept)
    top = kept.index(False)
    return ShadowCounts(
        pages=1,
        clicks=clicked,
        exchanged_pairs=exchanged_pairs(shown, chosen),
        new_items=len(set(chosen) - set(shown)),
        places=record.k,
        top_places=top,
        top_clicks=(clicks & ((1 << top) - 1)).bit_count(),
        kept_places=sum(kept),
        kept_clicks=(clicks & kept_bits).bit_count(),
    )


def exchanged_pairs(one: Sequence[str], other: Sequence[str]) -> int:
    """Pairs of items that two pages show in opposite orders; an item that is not on a page is below those that are.

    >>> exchanged_pairs("abc", "bac"), exchanged_pairs("abc", "abx"), exchanged_pairs("abc", "xab")
    (1, 1, 3)
    """
    end = len(one) + len(other)
    first = {item: place for place, item in enumerate(one)}
    second = {item: place for place, item in enumerate(other)}
    places = [(first.get(item, end), second.get(item, end)) for item in {**first, **second}]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(places, 2))
