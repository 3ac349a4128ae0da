"""Knowledge, catalogues, versions and alarms without an item; what is known of others stays."""

import json

import pytest

from saferank.service.commands.without_item import (
    DELETED,
    WHY,
    details_without,
    drop_item,
    is_named,
    lists_without,
    versions_without,
)
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.publications import differences, pack, restored
from saferank.store.contract import Publication, VersionRow
from tests.service.knowledge.test_fold import DAY, ITEMS, START, WINDOW, opened, traffic

ITEM = "i3"
OTHERS = [item for item in ITEMS if item != ITEM]


def learnt(policy: str) -> Fold:
    fold = opened(policy)
    pages = traffic(policy, 5, 150)
    fold.fold(pages, pages[-1].closes_at)
    fold.take_news()
    return fold


def evidence(fold: Fold) -> dict[tuple[str, str], tuple[int, int]]:
    learner = fold.knowledge[3].learner
    return {(i, j): learner.duel(i, j) for i in OTHERS for j in OTHERS if i < j}


@pytest.mark.parametrize("policy", ["kl-ucb-br", "safe-draw"])
def test_evidence_of_others_stays_and_nothing_names_the_item(policy: str) -> None:
    fold = learnt(policy)
    fold.watch.bets[ITEM] = [0.0] * 6
    before, known = evidence(fold), fold.knowledge[3]
    sure = {pair[:2] for pair in known.named(known.certified.pairs) if ITEM not in pair[:2]}
    assert any(n for _, n in before.values()) and is_named(pack(fold), ITEM)
    assert drop_item(fold, ITEM) == []
    assert not is_named(pack(fold), ITEM) and ITEM not in repr(pack(fold))
    assert evidence(fold) == before
    assert sure <= {pair[:2] for pair in known.named(known.certified.pairs)}
    (version,) = fold.take_news()[0]
    assert (version.cause, version.why, version.version) == ("restart", WHY, fold.version)
    assert ITEM not in repr(version) and len(fold.leader()) == len(set(fold.leader())) == 3
    again = restored(Publication(1, 1, fold.through, 0, pack(fold)), fold.terms)
    assert differences(pack(again), pack(fold)) == []


def test_pages_without_it_are_learnt_on() -> None:
    fold = learnt("kl-ucb-br")
    drop_item(fold, ITEM)
    later = [page for page in traffic("kl-ucb-br", 6, 300) if page.closes_at - WINDOW > fold.through]
    assert later
    count = fold.learnt
    fold.fold(later, later[-1].closes_at)
    assert fold.learnt > count


def test_an_item_that_is_not_known_changes_nothing() -> None:
    fold = learnt("kl-ucb-br")
    before = pack(fold)
    assert drop_item(fold, "stranger") == [] and pack(fold) == before and fold.take_news() == ([], [])


def test_with_too_few_items_left_a_page_size_begins_again() -> None:
    terms = Terms("kl-ucb-br", "anytime:0.5", WINDOW, DAY, START)
    fold = Fold.opened(1, terms, 3, bytes(16), (["a", "b", "c"], []))
    fold.take_news()
    assert drop_item(fold, "b") == [3]
    assert fold.leader()[:2] == ("a", "c") and len(fold.leader()) == 3 and not is_named(pack(fold), "b")
    assert [row.cause for row in fold.take_news()[0]] == ["restart"]


@pytest.mark.parametrize(
    ("lists", "k", "left"),
    [
        ((["a", "x", "b"], ["c"]), 2, (["a", "b"], ["c"])),
        ((["a", "x"], ["c", "d"]), 2, (["a", "c"], ["c", "d"])),
        ((["a", "b"], ["x", "c"]), 2, (["a", "b"], ["c"])),
        ((["a", "x"], []), 2, (["a", "\x010"], [])),
    ],
)
def test_a_catalogue_has_a_whole_page_without_it(
    lists: tuple[list[str], list[str]], k: int, left: tuple[list[str], list[str]]
) -> None:
    assert lists_without(lists, "x", k) == left


def test_versions_are_masked_where_they_name_it() -> None:
    def row(leader: list[str], gained: list[list[object]]) -> VersionRow:
        facts = json.dumps({"gained": gained, "lost": [], "k": 2})
        return VersionRow(1, 1, 5, "page", json.dumps(leader), None, facts)

    rows = [row(["a", "b"], []), row(["a", "x"], [["a", "b", 1, 2]]), row(["a"], [["a", "x", 1, 2], ["a", "b", 3, 4]])]
    first, second = versions_without(rows, "x")
    assert json.loads(first.leader) == ["a", DELETED] and json.loads(first.evidence) == json.loads(rows[1].evidence)
    assert json.loads(second.evidence) == {"gained": [["a", "b", 3, 4]], "lost": [], "k": 2}


def test_details_of_alarms_are_masked() -> None:
    details = ["on pages 'x' does not stand", "on pages 'xy' does not stand"]
    assert details_without(details, "x") == {details[0]: f"on pages {DELETED} does not stand"}
