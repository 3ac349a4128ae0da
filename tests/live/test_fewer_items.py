"""A learner without some of its items knows of the others what it knew."""

import itertools

import numpy as np
import pytest

from saferank.live.fewer_items import can_lose_items, without_items
from saferank.live.learner import Learner
from saferank.randomness import stream
from tests.live.frozen_pages import valid_certificates

POLICIES = ["kl-ucb-br", "bubble-rank", "safe-draw"]
ITEMS = [f"i{number}" for number in range(16)]
GONE = [0, 5, 9]


def taught(policy: str, lifetime: int | None = 10_000) -> Learner:
    """Visitors like items with a low number in reverse order."""
    learner = Learner(policy, original=ITEMS[:4], candidates=ITEMS[4:], rule="anytime:0.4", lifetime=lifetime)
    coins, dice = stream(1, policy), np.random.default_rng(1)
    for _ in range(400):
        page = learner.issue(coins)
        liked = page.ranking[:4].astype(np.int64) / len(ITEMS)
        learner.learn(page, (dice.random(4) < liked).astype(np.int64))
    return learner


@pytest.mark.parametrize("policy", POLICIES)
def test_evidence_and_certificates_of_the_others_stay(policy: str) -> None:
    learner = taught(policy)
    before = learner.canonical()
    fewer = without_items(learner, GONE)
    stay = [item for number, item in enumerate(ITEMS) if number not in GONE]
    assert fewer.items == stay and fewer.round == learner.round
    pairs = list(itertools.permutations(stay, 2))
    assert [fewer.duel(*pair) for pair in pairs] == [learner.duel(*pair) for pair in pairs]
    assert any(fewer.duel(*pair) != (0, 0) for pair in pairs)
    above, old = fewer.state.duels.table.above, learner.state.duels.table.above
    for i, j in pairs:
        assert above[fewer.index[i], fewer.index[j]] == old[learner.index[i], learner.index[j]]
    assert above.any()
    kept = [certificate for certificate in learner.certificates() if {*certificate[:2]} <= {*stay}]
    assert fewer.certificates() == kept
    assert learner.canonical() == before
    assert Learner.load(fewer.save()).canonical() == fewer.canonical()


@pytest.mark.parametrize("policy", POLICIES)
def test_it_goes_on(policy: str) -> None:
    fewer, coins = without_items(taught(policy), GONE), stream(2, policy)
    for _ in range(50):
        page = fewer.issue(coins)
        assert page.ranking[: page.places[0]].max() < len(fewer.items)
        fewer.learn(page, np.array([1, 0, 0, 0]))
    fewer.regroup(np.ones(len(fewer.items) + 1, np.bool_), ["new"])
    assert fewer.is_present("new")


def test_what_followed_through_an_item_that_goes_is_a_certificate_until_the_first_of_the_two_ends() -> None:
    learner = Learner("kl-ucb-br", original=["a", "b"], candidates=["x", "y"], rule="anytime:0.4", lifetime=100)
    table, index = learner.state.duels.table, learner.index
    for better, worse, end in (("a", "x", 200), ("x", "y", 100), ("y", "b", 200)):
        table.expires[index[better], index[worse]] = end
    for better, worse in itertools.combinations("axyb", 2):
        table.above[index[better], index[worse]] = True
    fewer = without_items(learner, [index["x"], index["y"]])
    assert valid_certificates(fewer) == [("a", "b", 100)]
    assert fewer.state.duels.table.above.tolist() == [[False, True], [False, False]]


def test_evidence_without_a_largest_catalogue_loses_no_items() -> None:
    assert can_lose_items(taught("kl-ucb-br")) and not can_lose_items(taught("kl-ucb-br", lifetime=None))
