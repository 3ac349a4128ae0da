"""What a ranker says of itself."""

from typing import Any

import pytest

from saferank import Ranker
from saferank.policies import POLICIES


def trained(policy: str) -> Ranker:
    options: Any = {"rule": POLICIES[policy].default_rule("0.01"), "seed": 1, "examination": (1.0, 0.8, 0.6)}
    ranker = Ranker(policy, original=["a", "b", "c"], candidates=["x", "y"], **options)
    for _ in range(400):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if item in ("a", "x")][:1])
    return ranker


def test_the_leader_its_pairs_and_the_challenger_are_told() -> None:
    ranker = trained("kl-ucb-br")
    told = ranker.explain()
    assert told.leader == ranker.leader
    assert [(pair.upper, pair.lower) for pair in told.pairs] == [*zip(told.leader, told.leader[1:], strict=False)]
    for pair in told.pairs:
        assert (pair.s, pair.n) == ranker.duels(pair.upper, pair.lower)
    assert told.pairs[0].decided and told.undecided == told.pairs[1:]
    assert told.challenger is not None
    assert told.challenger.item not in told.leader and told.challenger.against == told.leader[-1]
    assert told.challenger.index is not None and -1 <= told.challenger.index <= 1


def test_explaining_changes_nothing() -> None:
    ranker, twin = trained("kl-ucb-br"), trained("kl-ucb-br")
    for _ in range(50):
        ranker.explain(ranker.rank())
        twin.rank()
    assert [ranker.rank().items for _ in range(20)] == [twin.rank().items for _ in range(20)]


def test_the_challenger_told_is_the_one_that_comes() -> None:
    ranker = trained("kl-ucb-br")
    for _ in range(30):
        told = ranker.explain().challenger
        page = ranker.rank()
        assert told is not None and page.challenger == told.item
        ranker.feedback(page, page.items[-1:])


def test_every_position_of_a_page_has_a_role() -> None:
    ranker = Ranker("kl-ucb-br", original=["a", "b", "c"], candidates=["x"], seed=3)
    roles = {}
    for _ in range(40):
        page = ranker.rank()
        for place in ranker.explain(page).positions:
            assert place.item == page.items[place.position - 1]
            roles[place.role] = place.item
    assert roles["unranked, tried in place of c, compared with c"] == "x"
    assert roles["of the leader, compared with x, which challenges it from outside the page"] == "c"
    assert roles["swapped, compared with a"] == "b"
    assert "stands alone on this page" in roles


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_it_reads_well_for_every_policy(policy: str) -> None:
    ranker = trained(policy)
    text = str(ranker.explain(ranker.rank()))
    assert text.startswith(policy)
    assert "\nleader: " in text and "\nnext: " in text and "\nposition 3: " in text


def test_top_rank_tells_blocks_not_the_lead_of_the_moment() -> None:
    """Items in different blocks are never compared again: their order is settled, whatever (s, n) says."""
    ranker = trained("top-rank")
    blocks = ranker._plan.blocks
    for pair in ranker.explain().pairs:
        upper, lower = (ranker._learner.index[item] for item in (pair.upper, pair.lower))
        ends = {int(item): int(end) for item, end in zip(blocks.order, blocks.end, strict=True)}
        assert pair.decided == (ends[upper] != ends[lower])


def test_one_and_the_text_one_are_different_items() -> None:
    ranker = Ranker("kl-ucb-br", original=["a", "1"], candidates=[1], seed=2)
    for _ in range(20):
        page = ranker.rank()
        for place in ranker.explain(page).positions:
            group = next(group for group in page.groups if place.item in group)
            assert ("challenges it from outside" in place.role) == (
                page.hidden in group and place.item != page.challenger
            )
