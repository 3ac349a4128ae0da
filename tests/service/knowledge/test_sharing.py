"""What pages of one size have certified holds for pages of every size, and evidence stays apart."""

import json
import random

import pytest

from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.publications import comparable, pack, restored
from saferank.service.knowledge.sharing import Held, all_certified, introduce, joined, named
from saferank.service.knowledge.view import View
from saferank.store.contract import PageRow, Publication, VersionRow
from saferank.store.record_columns import unpacked
from tests.service.knowledge.test_fold import DAY, ITEMS, START, WINDOW, opened, page
from tests.service.knowledge.worlds import World

POLICIES = ["kl-ucb-br", "bubble-rank", "safe-draw"]


def test_what_contradicts_own_certificates_is_left_out_however_items_are_numbered() -> None:
    one, two = Held(Certified([(0, 1), (1, 2)]), ["b", "a", "c"]), Held(Certified([(0, 1)]), ["c", "b"])
    others = named([one, two])
    assert others == [("a", "c"), ("b", "a"), ("c", "b")]
    for names in ("abc", "cab", "cba"):
        index = {name: number for number, name in enumerate(names)}
        own = Certified([(index["a"], index["b"])])
        found = joined(own, others, index)
        assert {(names[i], names[j]) for i, j in found.pairs} == {("a", "b"), ("a", "c"), ("c", "b")}
        assert joined(own, [], index) is own


def test_what_follows_through_items_that_a_size_does_not_know_is_certain() -> None:
    found = joined(Certified(), [("b", "new"), ("new", "a")], {"a": 0, "b": 1})
    assert found.surely(1, 0) and not found.surely(0, 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_follows_the_certificates_of_another_size(policy: str) -> None:
    """Its pages are legal, its leader is the certified one, and what it has learnt itself is not touched."""
    world = World(policy, 7, 5, "anytime:0.1", seed=3)
    world.visit(600)
    assert world.knowledge.certified.pairs
    small = Knowledge(world.knowledge.terms, 3, world.base)
    before, alone = small.learner.save(), View(small, world.base)
    introduce({5: world.knowledge, 3: small})
    view = View(small, world.base)
    assert not alone.is_certain_of(small) and view.is_certain_of(small)
    assert alone.leader == tuple(world.base[:3]) != view.leader
    assert view._learner.leader()[0] == view.leader[0]
    pages = [view.page(random.Random(number).randbytes(32)) for number in range(200)]
    assert {made.fault for made in pages} == {None}
    assert small.learner.save() == before and small.certified.pairs == ()


def two_sizes(policy: str, seed: int, size: int) -> list[PageRow]:
    """Pages of 3 and of 5 places over several epochs; each visitor sees what was known when the page was made."""
    dice, fold, pages, at = random.Random(seed), opened(policy), [], START
    for _ in range(size):
        at += dice.choice([1, 50, 200])
        at += 2 * DAY if dice.random() < 0.01 else 0
        k = 3 if dice.random() < 0.3 else 5
        pages.append(page(fold, dice, at, k, ITEMS[:6]))
        if dice.random() < 0.2:
            fold.fold([row for row in pages if fold.through < row.closes_at - WINDOW], at)
    return pages


def folded(policy: str, pages: list[PageRow], cuts: list[int], end: int) -> tuple[object, list[VersionRow]]:
    fold, versions = opened(policy), []
    for through in [*cuts, end]:
        fold.fold([row for row in pages if fold.through < row.closes_at - WINDOW <= through], through)
        versions += fold.take_news()[0]
        before = fold
        fold = restored(Publication(1, 1, before.through, 0, pack(before)), before.terms)
        fold.window, fold.visitors = before.window, before.visitors
    return comparable(pack(fold)), versions


@pytest.mark.parametrize("policy", ["kl-ucb-br", "safe-draw"])
def test_cuts_make_no_difference_and_leaders_that_move_get_versions(policy: str) -> None:
    pages = two_sizes(policy, 4, 400)
    end, dice = pages[-1].closes_at + 5 * DAY, random.Random(1)
    whole = folded(policy, pages, [], end)
    assert folded(policy, pages, sorted(dice.randrange(START, end) for _ in range(12)), end) == whole
    facts = [json.loads(version.evidence) for version in whole[1]]
    moved = [fact for fact in facts if "by" in fact]
    assert moved and all(fact["by"] != fact["k"] and not fact["gained"] and not fact["lost"] for fact in moved)
    assert {version.cause for version, fact in zip(whole[1], facts, strict=True) if "by" in fact} >= {"page", "expired"}


def test_what_one_size_has_certified_moves_the_leader_of_another_until_it_ends() -> None:
    fold, dice, at = opened("safe-draw"), random.Random(2), START
    while not fold.knowledge.get(5) or not fold.knowledge[5].certified.pairs:
        at += 20
        fold.fold([page(fold, dice, at, 5, ITEMS[:6])], at)
        assert at < START + DAY
    knowledge = fold.knowledge[3]
    assert knowledge.certified.pairs == () and all_certified(knowledge).pairs
    while fold.leader(3) == tuple(ITEMS[:3]):
        at += 20
        fold.fold([page(fold, dice, at, 5, ITEMS[:6])], at)
        assert at < START + DAY
    assert knowledge.certified.pairs == () and knowledge.pages == 0
    assert json.loads(fold.versions[-1].evidence) == {"gained": [], "lost": [], "k": 3, "by": 5}
    assert json.loads(fold.versions[-1].leader) == list(fold.leader(3))
    fold.fold([], START + 4 * DAY)
    assert fold.leader(3) == tuple(ITEMS[:3]) and all_certified(knowledge) is knowledge.certified


def test_a_visitor_votes_once_whatever_the_sizes_of_the_pages() -> None:
    """Evidence of a pair is counted in the size of its page alone, and only the first time."""
    assert sum(_counted([b"visitor0"]).values()) == 1
    many = _counted([b"visit%3d" % number for number in range(40)])
    assert sorted(many) == [2, 3] and 10 < sum(many.values()) <= 40 and min(many.values()) > 5


def _counted(visitors: list[bytes]) -> dict[int, int]:
    """By page size: comparisons that were learnt from visitors in turn, who click on the top item of 40 pages."""
    terms = Terms("kl-ucb-br", "anytime:0.000001", WINDOW, 0, START)
    fold = Fold.opened(1, terms, 2, bytes(16), (["i0", "i1"], ["i2"]))
    dice, at = random.Random(3), START
    for number in range(40):
        at += 2 * WINDOW
        row = page(fold, dice, at, 2 + number % 2, ["i0", "i1", "i2"])
        record = unpacked(row.record)._replace(visitor=visitors[number % len(visitors)])
        fold.fold([row._replace(record=record.packed(), clicks=1)], at)
    return {k: _comparisons(knowledge) for k, knowledge in fold.knowledge.items()}


def _comparisons(knowledge: Knowledge) -> int:
    items = knowledge.learner.items
    return sum(knowledge.learner.duel(a, b)[1] for n, a in enumerate(items) for b in items[:n])
