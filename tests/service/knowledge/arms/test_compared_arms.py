"""Arms on equal terms: which pages the fold counts, and what it keeps of them.

Learning needs compiled kernels and is tested in ``test_fold.py``; here explored pages show production's page, so that
the fold's own rules decide everything.
"""

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from saferank.service.knowledge.arms import (
    DAY_MS,
    EXPLORE,
    HOLDOUT,
    LEARNING,
    MOST_BINS,
    MOST_CLICKS,
    OFF,
    REPEAT,
    SHADOW,
    UNCHANGED,
    Bin,
    ComparedArms,
    CountedPages,
    compared_arms,
)
from saferank.service.knowledge.fold import Fold, pack, restored
from saferank.service.knowledge.knowledge import Terms
from saferank.statistics.effect import ArmComparison, difference, merged, new_comparison, relative_difference, with_page
from saferank.store.contract import PageRow, Publication
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import ClosedPages, unpacked

WINDOW, START = 1000, 1_000_000
ITEMS = ("a", "b", "c")


class Unlearnt(Fold):
    """A fold that counts and does not learn."""

    def _learn(self, run: ClosedPages) -> None:
        self.learnt += len(run)


def opened(k: int = 3) -> Unlearnt:
    fold = Unlearnt(1, Terms("kl-ucb-br", "anytime:0.5", WINDOW, 0, START))
    fold.compared = ComparedArms.of_page_size(k)
    return fold


def page(at: int, arm: int, visitor: bytes, clicks: int = 0, share: float = 0.2, number: int = 0) -> PageRow:
    base, explored = ITEMS, arm == EXPLORE
    record = PageRecord(
        impression=at.to_bytes(6, "big") + number.to_bytes(10, "big"), tenant="t", context="c", policy="p",
        arm=arm, knowledge=1, round=0, window_ms=WINDOW, k=3, visitor=visitor, catalogue=bytes(16), coins=bytes(32),
        row=(), instead=base, share=share if explored or arm == HOLDOUT else 0.0,
    )  # fmt: skip
    return PageRow(record.impression, 1, at + WINDOW, record.packed(), clicks)


def tallied(fold: Fold) -> list[int]:
    return [tally[0] for tally in fold.tallies]


def clicks_of(fold: Fold) -> ArmComparison:
    return fold.compared.now[0]


@pytest.mark.parametrize("arm", [EXPLORE, HOLDOUT])
def test_the_first_page_of_a_visitor_and_window_counts_in_its_arm_and_later_ones_in_none(arm: int) -> None:
    fold, at = opened(), START
    views = [page(at + 10 * number, arm, b"someone!", 1, number=number) for number in range(3)]
    fold.fold([*views, page(at + 40, arm, b"another!"), page(at + WINDOW, arm, b"someone!")], at + WINDOW)
    counted = [0] * 5
    counted[arm], counted[REPEAT] = 3, 2
    assert tallied(fold) == counted
    state = clicks_of(fold)
    assert (state.holdout.pages + state.served.pages, state.holdout.total + state.served.total) == (3, 1)


def test_a_visitor_whose_arm_changes_within_a_window_counts_once() -> None:
    """The share changed meanwhile: the page that came first decides, whichever arm it is in."""
    fold = opened()
    fold.fold([page(START, HOLDOUT, b"someone!"), page(START + 1, EXPLORE, b"someone!", 1)], START + 5)
    assert tallied(fold) == [0, 1, 0, 0, 1]
    assert fold.learnt == 0


def test_without_a_visitor_every_page_counts_and_other_arms_take_no_part() -> None:
    fold = opened()
    rows = [page(START + number, arm, b"", 1) for number, arm in enumerate([EXPLORE, EXPLORE, HOLDOUT, OFF, SHADOW])]
    fold.fold(rows, START + 10)
    assert tallied(fold) == [2, 1, 1, 1, 0]
    assert (clicks_of(fold).served.pages, clicks_of(fold).holdout.pages) == (2, 1)


def test_pages_without_a_share_are_counted_and_not_compared() -> None:
    fold = opened()
    fold.fold([page(START, EXPLORE, b"", 1, share=0.0)], START)
    assert tallied(fold)[EXPLORE] == 1
    assert clicks_of(fold) == ArmComparison()
    assert fold.compared.days == {0: Bin(chosen=[1, 0, 0], clicked=1)}


def test_a_page_that_failed_its_check_counts_as_served() -> None:
    """Its coin put it there. To leave it out would make the count depend on the coin."""
    fold, row = opened(), page(START, EXPLORE, b"someone!", 1)
    record = unpacked(row.record)._replace(arm=OFF).packed()
    fold.fold([row._replace(record=record), page(START + 1, EXPLORE, b"someone!", 1)], START + 5)
    assert tallied(fold) == [0, 0, 1, 0, 1]
    assert clicks_of(fold).served.pages == 1 and fold.learnt == 0


def test_recalled_visitors_are_those_of_both_arms() -> None:
    dice, fold = random.Random(1), opened()
    pages = [
        page(START + number, dice.choice([EXPLORE, HOLDOUT]), b"person%02d" % dice.randrange(9)) for number in range(30)
    ]
    fold.fold(pages, START + 30)
    twin = opened()
    twin.recall(pages)
    assert twin.visitors.keys == fold.visitors.keys and len(twin.visitors) == 9


def test_the_comparison_goes_into_publications_exactly() -> None:
    dice, fold = random.Random(2), opened()
    fold.fold(
        [page(START + n, HOLDOUT if dice.random() < 0.2 else EXPLORE, b"", dice.randrange(8)) for n in range(300)],
        START + 300,
    )
    fold.compared.restart(START + 10, whole=False)
    assert compared_arms(json.loads(json.dumps(fold.compared.facts()))).facts() == fold.compared.facts()


def counted(pages: Sequence[tuple[Any, ...]]) -> CountedPages:
    """Pages (issued_at, served, share, clicks), and how the policy changed them if it chose them."""
    columns: list[Any] = [np.array(column) for column in zip(*(page[:4] for page in pages), strict=True)]
    chosen = np.array([len(page) > 4 for page in pages])
    columns += [chosen, np.array([page[4] if len(page) > 4 else UNCHANGED for page in pages])]
    return CountedPages(*columns)


def test_clicks_beyond_the_bound_are_left_out() -> None:
    assert [ComparedArms.of_page_size(k).most for k in (1, 3, 10, 60)] == [1, 3, MOST_CLICKS, MOST_CLICKS]
    compared = ComparedArms.of_page_size(3)
    compared.count(counted([(START, True, 0.1, 7)]))  # a page of ten items in a context that was opened with three
    assert compared.now[0].served.total == 3 and compared.days[0].served == [1, 1, 3]


def test_the_newest_days_are_kept_and_the_oldest_of_them_holds_all_before() -> None:
    compared = ComparedArms(1)
    for day in range(MOST_BINS + 5):
        compared.count(counted([(day * DAY_MS + 1, day % 3 > 0, 0.3, day % 2, LEARNING)]))
    assert (min(compared.days), len(compared.days)) == (5, MOST_BINS)
    assert compared.days[5].chosen == [0, 0, 6]
    assert all_days(compared).lift == pytest.approx(relative_difference(compared.now[0]).estimate)


def test_pages_are_summed_by_the_hour_for_two_days_and_then_by_the_day() -> None:
    """The bins follow from the times of the pages alone, however the fold cuts them."""
    hour, first = DAY_MS // 24, 10 * DAY_MS + 5 * DAY_MS // 24
    times = [first + number * hour // 2 for number in range(2 * 24 * 5)]
    whole, parts = ComparedArms(1), ComparedArms(1)
    for compared, size in ((whole, 1000), (parts, 7)):
        for begin in range(0, len(times), size):
            chunk = np.array(times[begin : begin + size])
            for run in compared.runs(chunk):
                compared.count_clicked(int(chunk[run.start]), run.stop - run.start)
    assert whole.facts() == parts.facts()
    fine = [key for key in whole.bins if key < first // hour + 48]
    assert len(fine) == 48 and {whole.bins[key].clicked for key in fine[1:43]} == {2}
    assert sorted(set(whole.bins) - set(fine)) == [24 * day for day in (13, 14, 15)]
    assert [part.clicked for part in whole.days.values()] == [38, 48, 48, 48, 48, 10]


def all_days(*compared: ComparedArms) -> Bin:
    total = Bin()
    for arms in compared:
        for day in arms.days.values():
            total.add(day)
    return total


def test_pages_from_before_there_was_a_holdout_are_not_in_the_sums_of_days() -> None:
    """Equal arms; ten days without a holdout at 0.6 clicks a page, then ten with one at 0.3. The mean of all served
    pages is 49 % above that of the holdout, which is no effect."""
    compared, dice = ComparedArms.of_page_size(10), random.Random(1)
    for day in range(20):
        share, chance = (0.0, 0.6) if day < 10 else (0.1, 0.3)
        for number in range(500):
            served, clicks = dice.random() >= share, int(dice.random() < chance)
            compared.count(counted([(day * DAY_MS + number + 1, served, share, clicks)]))
    found = relative_difference(compared.now[0], 0.05, 10)
    lift = all_days(compared).lift
    assert lift is not None and lift == pytest.approx(found.estimate) and abs(lift) < 0.2
    assert compared.days[3] == Bin() and sum(compared.days[15].served[:1] + compared.days[15].holdout[:1]) == 500


def test_days_and_contexts_with_other_shares_and_clicks_do_not_mix() -> None:
    """Equal arms in both contexts; the one with more clicks has the larger holdout. Plain means say -25 %."""
    many, few, dice = ComparedArms(1), ComparedArms(1), random.Random(3)
    for number in range(8000):
        for compared, share, chance in ((many, 0.5, 0.8), (few, 0.1, 0.4)):
            served, clicks = dice.random() >= share, int(dice.random() < chance)
            compared.count(counted([(DAY_MS + number, served, share, clicks)]))
    total = all_days(many, few)
    plain = total.served[2] / total.served[0] / (total.holdout[2] / total.holdout[0]) - 1
    assert plain < -0.2 and total.lift is not None and abs(total.lift) < 0.05
    merged_state = merged(many.now[0], few.now[0])
    assert total.lift == pytest.approx(relative_difference(merged_state).estimate)


def test_the_days_begin_again_with_the_comparison_of_the_tenant() -> None:
    compared = ComparedArms(1)
    for number in range(40):
        compared.count(counted([(START + number, number % 4 > 0, 0.25, number % 2, UNCHANGED)]))
    before = all_days(compared)
    compared.restart(START + 50, whole=False)
    assert all_days(compared) == before
    compared.restart(START + 60, whole=True)
    assert all_days(compared) == Bin(chosen=[40, 0, 0]), "what exploring costs has not begun again"


def test_a_restart_of_a_context_keeps_its_part_of_the_tenants_comparison() -> None:
    compared = ComparedArms(1)
    for number in range(40):
        compared.count(counted([(START + number, number % 4 > 0, 0.25, number % 2)]))
    before = compared.whole
    compared.restart(START + 50, whole=False)
    compared.count(counted([(START + 50, True, 0.25, 1)]))  # issued before the restart: in neither
    assert compared.now[0].served.pages == 0 and compared.whole == before
    compared.count(counted([(START + 51, True, 0.25, 1)]))
    assert compared.now[0].served.pages == 1 and compared.whole[0].served.pages == 31
    compared.restart(START + 60, whole=True)
    assert compared.whole == (ArmComparison(), ArmComparison())


def test_the_trial_that_claimed_32_points_covers_zero_in_the_fold() -> None:
    """Everybody clicks with probability 1/2 on the first of three views, and the base alternates: 3,000 sessions, a
    fifth of them in the holdout, through the fold itself. Probability that the interval misses 0: at most 0.05."""
    dice, fold, rows = random.Random(32), opened(), []
    for number in range(3000):
        arm, click = HOLDOUT if dice.random() < 0.2 else EXPLORE, dice.random() < 0.5
        for view in range(3):
            at = START + 2 * WINDOW * number // 100 + view
            rows.append(page(at, arm, number.to_bytes(8, "big"), int(click and view == 0), number=number))
    fold.fold(sorted(rows, key=lambda row: row.impression), rows[-1].closes_at)
    assert tallied(fold)[EXPLORE] + tallied(fold)[HOLDOUT] >= 3000 and tallied(fold)[REPEAT] > 5000
    for state, most in zip(fold.compared.now, (3, 1), strict=True):
        found = difference(state, 0.05, most)
        assert found.low <= 0 <= found.high and found.low > -0.15 and found.high < 0.15


def test_a_published_fold_goes_on_comparing() -> None:
    fold = Fold.opened(1, Terms("kl-ucb-br", "anytime:0.5", WINDOW, 0, START), 3, bytes(16), (list(ITEMS), ["d"]))
    fold.fold([page(START, HOLDOUT, b"", 1)], START)
    twin = restored(Publication(1, 1, fold.through, 0, pack(fold)), fold.terms)
    for each in (fold, twin):
        each.fold([page(START + 1, HOLDOUT, b"", 3)], START + 1)
    assert twin.compared.facts() == fold.compared.facts()
    assert twin.compared.now[0].holdout.total == 3


def test_pages_in_a_row_are_folded_as_one_by_one_to_the_last_digit() -> None:
    dice = random.Random(8)
    pages = [
        (START + number, dice.random() > 0.2, dice.choice([0.1, 0.2, 0.5]), dice.randrange(5)) for number in range(400)
    ]
    clicks, clicked = new_comparison(), new_comparison()
    for _, served, share, found in pages:
        clicks = with_page(clicks, served=served, outcome=min(found, 3), share=share, most=3)
        clicked = with_page(clicked, served=served, outcome=min(found, 1), share=share)
    facts = []
    for size in (1, 7, 400):
        compared = ComparedArms(3)
        for first in range(0, 400, size):
            compared.count(counted(pages[first : first + size]))
        assert compared.now == (clicks, clicked)
        facts.append(compared.facts())
    assert facts[0] == facts[1] == facts[2]
