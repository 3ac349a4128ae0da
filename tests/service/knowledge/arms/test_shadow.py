"""Counts of shadow pages, against pages written out by hand."""

import itertools
import random

import pytest

from saferank.service.knowledge.arms import SHADOW, ShadowCounts, exchanged_pairs, total, with_shadow_page
from saferank.service.knowledge.fold import comparable, pack, restored
from saferank.store.contract import PageRow, Publication
from saferank.store.page_record import Law, PageRecord
from tests.service.knowledge.test_fold import ITEMS, START, WINDOW, opened


def shadow_record(shown: str, chosen: str, at: int = START) -> PageRecord:
    places = len(chosen)
    return PageRecord(
        impression=at.to_bytes(6, "big") + bytes(10), tenant="t", context="c", policy="kl-ucb-br", arm=SHADOW,
        knowledge=1, round=1, window_ms=WINDOW, k=len(shown), visitor=b"", catalogue=bytes(16), coins=bytes(32),
        row=tuple(chosen), instead=tuple(shown), law=Law(bytes(range(places)), bytes(range(1, places + 1))),
    )  # fmt: skip


def shadow_page(shown: str, chosen: str, clicks: int, at: int = START) -> PageRow:
    record = shadow_record(shown, chosen, at)
    return PageRow(record.impression, 1, at + WINDOW, record.packed(), clicks)


@pytest.mark.parametrize(
    ("shown", "chosen", "clicks", "expected"),
    [
        ("abc", "abcx", 0b101, ShadowCounts(pages=1, same=1, clicks=2, same_clicks=2)),
        (  # the first two exchanged: the clicks on c are kept, none is above the first difference
            "abc", "bacx", 0b101,
            ShadowCounts(pages=1, clicks=2, exchanged_pairs=1, places=3, kept_places=1, kept_clicks=1),
        ),
        (  # another item comes last
            "abc", "abxc", 0b111,
            ShadowCounts(pages=1, clicks=3, exchanged_pairs=1, new_items=1, places=3, top_places=2, top_clicks=2,
                         kept_places=2, kept_clicks=2),
        ),
        (  # a kept place below the first difference
            "abcd", "acbd", 0b1011,
            ShadowCounts(pages=1, clicks=3, exchanged_pairs=1, places=4, top_places=1, top_clicks=1,
                         kept_places=2, kept_clicks=2),
        ),
    ],
)  # fmt: skip
def test_a_page(shown: str, chosen: str, clicks: int, expected: ShadowCounts) -> None:
    assert with_shadow_page(ShadowCounts(), shadow_record(shown, chosen), clicks) == expected
    assert with_shadow_page(expected, shadow_record(shown, chosen), clicks) == total((expected, expected))


def test_a_page_without_the_choice_is_not_counted() -> None:
    assert with_shadow_page(ShadowCounts(), shadow_record("abc", ""), 0b1) == ShadowCounts()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_exchanged_pairs_are_those_of_all_items_in_opposite_orders(k: int) -> None:
    items = "abcde"
    for one, other in itertools.product(itertools.permutations(items, k), repeat=2):
        opposite = 0
        for x, y in itertools.combinations(items, 2):
            sides = []
            for page in (one, other):
                places = [page.index(item) if item in page else k for item in (x, y)]
                sides.append(places[0] - places[1])
            opposite += sides[0] * sides[1] < 0
        assert exchanged_pairs(one, other) == opposite


def test_the_fold_counts_them_however_closings_cut_them() -> None:
    dice = random.Random(3)
    pages = [
        shadow_page("abc", "".join(dice.sample("abcd", 4)), dice.randrange(8), START + number) for number in range(40)
    ]
    whole, cut = opened(), opened()
    whole.fold(pages, START + 40)
    for begin in range(0, 40, 7):
        cut.fold(pages[begin : begin + 7], START + min(begin + 6, 40))
        cut = restored(Publication(1, 1, cut.through, 0, pack(cut)), cut.terms)
    cut.fold([], START + 40)
    assert whole.shadow.pages == 40 > whole.shadow.same > 0
    assert comparable(pack(cut)) == comparable(pack(whole))
    assert whole.leader() == tuple(ITEMS[:3]) and whole.learnt == 0  # shadow pages teach nothing
