"""The fold of a context: the same however closings cut it, also over epochs, page sizes and sizes of catalogues."""

import random
from typing import Any

import pytest

from saferank.policies.safe_draw.draw import TARGET
from saferank.service.knowledge.arms import EXPLORE, HOLDOUT
from saferank.service.knowledge.fold import Fold, comparable, pack, restored
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.view import View
from saferank.statistics.bets import NEAR_EVEN, SURGE, entry_of, evidence
from saferank.statistics.pairs import row_of
from saferank.store.contract import PageRow, Publication
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import unpacked

WINDOW, DAY = 1000, 20_000
START = 1_000_000
ITEMS = [f"i{number}" for number in range(7)]


def opened(policy: str = "kl-ucb-br", lifetime_ms: int = DAY) -> Fold:
    terms = Terms(policy, "anytime:0.5", WINDOW, lifetime_ms, START)
    return Fold.opened(1, terms, 3, bytes(16), (ITEMS[:5], ITEMS[5:]))


def page(fold: Fold, dice: random.Random, at: int, k: int, items: list[str], arm: int = EXPLORE) -> PageRow:
    """A page from what is known, with clicks that favour later items; a visitor now and then comes again."""
    impression = at.to_bytes(6, "big") + dice.randbytes(10)
    visitor = dice.choice([b"", b"visitor%d" % dice.randrange(10), dice.randbytes(8)])
    record = PageRecord(
        impression=impression, tenant="t", context="c", policy=fold.terms.policy, arm=arm,
        knowledge=fold.version, round=0, window_ms=WINDOW, k=k, visitor=visitor, catalogue=bytes(16), coins=bytes(32),
        row=(), instead=tuple(items[:k]),
    )  # fmt: skip
    if arm == EXPLORE:
        record = View(fold.knowledge, items, [], k).page(dice.randbytes(32), record)._replace(coins=bytes(32))
    clicks = sum((dice.random() < int(item[1:]) / 8) << place for place, item in enumerate(record.shown))
    return PageRow(impression, 1, at + WINDOW, record.packed(), clicks)


def traffic(policy: str, seed: int, size: int) -> list[PageRow]:
    """Pages of two sizes over several epochs, made from what was known a while before."""
    dice, fold, pages, at = random.Random(seed), opened(policy), [], START
    for _ in range(size):
        at += dice.choice([1, 50, 200, 700])
        at += 2 * DAY if dice.random() < 0.01 else 0
        arm = HOLDOUT if dice.random() < 0.1 else EXPLORE
        pages.append(page(fold, dice, at, dice.choice([3, 3, 2, 5]), dice.sample(ITEMS, 6), arm))
        if dice.random() < 0.2:
            fold.fold([row for row in pages if fold.through < row.closes_at - WINDOW], at)
    return pages


def folded(policy: str, pages: list[PageRow], cuts: list[int], end: int) -> tuple[object, object, object]:
    fold, versions, alarms = opened(policy), [], []
    for through in [*cuts, end]:
        fold.fold([row for row in pages if fold.through < row.closes_at - WINDOW <= through], through)
        made, told = fold.take_news()
        versions += made
        alarms += told
        before = fold
        fold = restored(Publication(1, 1, before.through, 0, pack(before)), before.terms)
        fold.visitors = before.visitors
    return comparable(pack(fold)), versions, alarms


@pytest.mark.parametrize("seed", range(3))
def test_cuts_and_publications_in_between_make_no_difference(seed: int) -> None:
    pages = traffic("kl-ucb-br", seed, 250)
    end = pages[-1].closes_at + 5 * DAY
    dice = random.Random(seed)
    whole = folded("kl-ucb-br", pages, [], end)
    some = sorted(dice.randrange(START, end) for _ in range(12))
    each = [row.closes_at - WINDOW for row in pages]
    assert folded("kl-ucb-br", pages, some, end) == whole == folded("kl-ucb-br", pages, each, end)
    causes = {version.cause for version in whole[1]}  # type: ignore[attr-defined]
    assert {"opened", "page", "expired"} <= causes


def test_visitors_of_the_newest_window_are_recalled_from_its_pages() -> None:
    dice, fold = random.Random(5), opened()
    pages = [page(fold, dice, START + 10 * number, 3, ITEMS) for number in range(40)]
    fold.fold(pages, START + 390)
    twin = restored(Publication(1, 1, fold.through, 0, pack(fold)), fold.terms)
    begin = fold.through // WINDOW * WINDOW
    twin.recall([row for row in pages if row.closes_at - WINDOW >= begin])
    assert (twin.visitors.keys, twin.visitors.window) == (fold.visitors.keys, fold.visitors.window)
    assert len(fold.visitors) > 10


def test_few_and_many_items_share_their_evidence() -> None:
    """safe-draw has a plan for at most 12 items and one for more. Pages of both teach the same evidence."""
    dice, fold, at = random.Random(7), opened("safe-draw", lifetime_ms=0), START
    few, many = ITEMS, [*ITEMS, *(f"i{number}" for number in range(7, 20))]
    for number in range(200):
        at += 1
        fold.fold([page(fold, dice, at, 3, many if number % 3 == 0 else few)], at)
    assert int(fold.knowledge.learner.evidence.learned[0]) == sum(tally[0] for tally in fold.tallies[:1])
    assert len(fold.knowledge.learner.items) > 12 and fold.knowledge.certified.pairs


def test_pages_that_renew_a_certificate_are_learnt() -> None:
    """safe-draw exchanges the two items of a certificate on purpose in its second epoch, and marks their places."""
    dice, fold, at, renewing = random.Random(1), opened("safe-draw"), START, 0
    while renewing < 3:
        at += 50
        row = page(fold, dice, at, 3, ITEMS)
        renewing += any(bits & TARGET for bits in unpacked(row.record).law.exchanges)
        fold.fold([row], at)
        assert at < START + 2 * DAY


def test_clicks_that_turn_round_before_anything_is_certain_are_no_alarm() -> None:
    """Evidence is scaled down, as after an alarm. But there was no certificate, so there is nothing to tell anybody."""
    terms = Terms("safe-draw", "anytime:1e-5", WINDOW, 1000 * DAY, START)
    dice, fold, at = random.Random(3), Fold.opened(1, terms, 2, bytes(16), (["i1", "i2"], [])), START
    fold.fold([page(fold, dice, at, 2, ["i1", "i2"])], at)
    duels, i1, i2 = fold.knowledge.learner.evidence.duels, fold.knowledge.index["i1"], fold.knowledge.index["i2"]
    row = row_of(duels, i1, i2)
    duels.capital[entry_of(duels, row, SURGE, int(i2 > i1))] = duels.levels[0] + 1
    information = 40 / NEAR_EVEN**2
    duels.information[row], duels.lead[row] = information, information * NEAR_EVEN / (3 if i1 < i2 else -3)
    assert evidence(duels, i1, i2) > 1.5
    while not fold.knowledge.alarms:
        at += WINDOW
        one = page(fold, dice, at, 2, ["i1", "i2"])
        fold.fold([one._replace(clicks=1 << unpacked(one.record).shown.index("i2"))], at)
        assert at < START + DAY
    versions, alarms = fold.take_news()
    assert (len(versions), alarms, fold.alarms["contradiction"]) == (1, [], 0)


def large(n_items: int) -> Fold:
    """Opened with more items, which are never clicked."""
    terms, more = Terms("kl-ucb-br", "anytime:0.5", WINDOW, 0, START), ["i" + "0" * (2 + n) for n in range(n_items)]
    return Fold.opened(1, terms, 3, bytes(16), (ITEMS[:5], [*ITEMS[5:], *more]))


def test_items_that_come_and_go_do_not_undo_what_is_known_of_those_that_stay() -> None:
    """Of 80 items that come each is here for two pages; three stay."""
    dice, fold, pages = random.Random(4), large(200), []
    for number in range(160):
        newcomer = "i" + "0" * (300 + number // 2)
        row = page(fold, dice, START + 10 * number, 3, [ITEMS[1], ITEMS[3], newcomer, ITEMS[6]])
        shown = unpacked(row.record).shown
        pages.append(row._replace(clicks=sum((item in (ITEMS[3], ITEMS[6])) << at for at, item in enumerate(shown))))
        if number % 20 == 19:
            fold.fold(pages[-20:], START + 10 * number)
    knowledge, stay = fold.knowledge, {ITEMS[1], ITEMS[3], ITEMS[6]}
    index, (versions, _) = knowledge.learner.index, fold.take_news()
    assert len(index) > 256
    assert stay <= index.keys() and newcomer in index
    assert knowledge.certified.surely(index[ITEMS[3]], index[ITEMS[1]]) and fold.leader()[0] == ITEMS[3]

    def again(cuts: list[int]) -> object:
        end, twin, made = pages[-1].closes_at, large(200), []
        for through in [*cuts, end]:
            twin.fold([row for row in pages if twin.through < row.closes_at - WINDOW <= through], through)
            made += twin.take_news()[0]
            visitors = twin.visitors
            twin = restored(Publication(1, 1, twin.through, 0, pack(twin)), twin.terms)
            twin.visitors = visitors
        return made, comparable(pack(twin))

    whole = again([])
    assert whole == again(sorted(dice.randrange(START, START + 1600) for _ in range(25)))
    assert whole[0] == versions  # type: ignore[index]


def visited(fold: Fold, dice: random.Random, pages: int, at: int) -> list[PageRow]:
    """Pages that are folded one by one, from what was known before each."""
    made = []
    for _ in range(pages):
        at += 300
        made.append(page(fold, dice, at, 3, ITEMS[:6]))
        fold.fold(made[-1:], at)
    return made


NEW: dict[str, Any] = {"policy": "safe-draw", "rule": "anytime:0.5", "lifetime_ms": 3 * DAY, "source_daily_pages": 5}


def reset_after(pages: int) -> tuple[Fold, list[PageRow], int]:
    """A fold that a reset gave new terms in its third epoch or later, the pages before, and the time of the reset."""
    fold, dice = opened(), random.Random(1)
    made = visited(fold, dice, pages, START)
    at = fold.through + WINDOW
    fold.reset(7, at, "new terms", NEW)
    return fold, made, at


def test_a_reset_takes_other_terms_and_counts_epochs_from_there() -> None:
    old = opened()
    visited(old, random.Random(1), 150, START)
    fold, _, at = reset_after(150)
    assert old.epoch >= 2 and old.knowledge.certified.pairs
    assert fold.terms == Terms(**NEW, window_ms=WINDOW, opened_at=at, first_epoch=old.epoch + 1)
    assert (fold.epoch, fold.knowledge.epoch, fold.terms_version) == (old.epoch + 1, old.epoch + 1, old.version + 1)
    assert (fold.terms.epoch_at(START), fold.terms.epoch_at(at + 3 * DAY)) == (fold.epoch, fold.epoch + 1)
    assert fold.knowledge.learner.kind.name == "safe-draw" and not fold.knowledge.certified.pairs
    assert fold.leader() == tuple(ITEMS[:3])
    visited(fold, random.Random(2), 30, at)
    assert fold.knowledge.learner.items and fold.learnt > old.learnt
    begin = fold.terms.begin_of(fold.epoch + 1)
    fold.turn_to(begin)
    assert begin == at + 3 * DAY and fold.knowledge.epoch == fold.epoch == fold.terms.first_epoch + 1


def test_after_new_terms_cuts_and_publications_make_no_difference() -> None:
    whole, before, at = reset_after(60)
    after = visited(whole, random.Random(2), 40, at)
    fold = opened()
    fold.fold(before, before[-1].closes_at - WINDOW)
    fold.reset(7, at, "new terms", NEW)
    for row in after:
        visitors = fold.visitors
        fold = restored(Publication(1, 1, fold.through, fold.operation, pack(fold)), fold.opened_terms)
        fold.visitors = visitors
        fold.fold([row], row.closes_at - WINDOW)
    assert comparable(pack(fold)) == comparable(pack(whole))
    assert (fold.terms, fold.terms_version, fold.operation) == (whole.terms, whole.terms_version, 7)


@pytest.mark.parametrize("terms", [None, {"policy": "kl-ucb-br", "rule": "anytime:0.5", "lifetime_ms": DAY}])
def test_a_reset_to_the_same_terms_keeps_the_epochs(terms: dict[str, object] | None) -> None:
    fold = opened()
    visited(fold, random.Random(1), 80, START)
    epoch = fold.epoch
    fold.reset(7, fold.through + 1, "again", terms)
    assert (fold.epoch, fold.terms, fold.terms_version) == (epoch, fold.opened_terms, 0)


def test_only_the_limit_of_sources_changes_without_a_new_epoch() -> None:
    fold = opened()
    fold.reset(7, START + 1, "a limit", {"source_daily_pages": 1})
    assert (fold.terms.source_daily_pages, fold.epoch, fold.terms_version) == (1, 0, 0)
    assert [fold.sources.admits(b"source00", START) for _ in range(2)] == [True, False]
    again = restored(Publication(1, 1, fold.through, 7, pack(fold)), fold.opened_terms)
    assert not again.sources.admits(b"source00", START)


def test_new_terms_give_nobody_a_second_vote() -> None:
    fold = opened()
    visited(fold, random.Random(1), 20, START)
    marks = fold.votes.marks.tolist()
    assert marks
    fold.reset(7, fold.through + 1, "new terms", NEW)
    fold.votes.turn_to(fold.epoch)
    assert fold.votes.marks.tolist() == marks


def test_pages_that_the_policy_before_a_reset_drew_teach_nothing() -> None:
    old, dice = opened("kl-ucb-br"), random.Random(1)
    late = [page(old, dice, START + 500 * n, 3, ITEMS[:6]) for n in range(1, 30)]
    for policy, learns in (("safe-draw", False), ("kl-ucb-br", True)):
        fold = opened("kl-ucb-br")
        fold.reset(7, START, "new terms", {"policy": policy})
        fold.fold(late, late[-1].closes_at)
        assert (fold.learnt > 0) is learns and (fold.knowledge.pages > 0) is learns
