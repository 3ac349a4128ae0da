"""The check of a page: everything the policies make passes, and nothing that differs by one item."""

import itertools
import os

import pytest

from saferank.learner import Learner, frozen
from saferank.service.learning import random_words
from saferank.service.pages import leader_behind, swaps_of
from saferank.service.serving_check import Proposal, check_page

LEADER = ("a", "b", "c", "d")
ITEMS = frozenset("abcdxyz")


def fault(row: str, ends: tuple[int, ...], challenger: str | None, round_: int) -> str | None:
    return check_page(LEADER, ITEMS, Proposal(list(row), ends, challenger, round_)).fault


@pytest.mark.parametrize("policy", ["kl-ucb-br", "bubble-rank"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_pages_of_the_policies_pass_and_give_their_leader_back(policy: str, size: int) -> None:
    items = list("abcdefg")
    learner = Learner(policy, original=items[:size], candidates=items[size:])
    for _ in range(40):
        page = frozen(learner, learner.issue(random_words(os.urandom(32))))
        row = [str(item) for item in page.row]
        proposal = Proposal(row, page.group_ends, None if page.challenger is None else str(page.challenger), page.round)
        verdict = check_page([str(item) for item in learner.leader()], frozenset(items), proposal)
        assert verdict.fault is None
        assert leader_behind(row, page.group_ends, verdict.exchanged, size) == learner.leader()
        shown, leader = row[:size], learner.leader()
        assert swaps_of(verdict.exchanged, page.group_ends, size) == sum(
            shown[place] == leader[place + 1] and shown[place + 1] == leader[place] for place in range(size - 1)
        )


def test_of_all_orders_exactly_the_exchanges_of_the_parity_pass() -> None:
    odd = {"".join(row) for row in itertools.permutations("abcdx") if fault("".join(row), (1, 3, 5), "x", 1) is None}
    even = {"".join(row) for row in itertools.permutations("abcdx") if fault("".join(row), (2, 4, 5), "x", 2) is None}
    assert odd == {"abcdx", "acbdx", "abcxd", "acbxd"}
    assert even == {"abcdx", "bacdx", "abdcx", "badcx"}


@pytest.mark.parametrize(
    ("row", "ends", "challenger", "round_", "why"),
    [
        ("abca", (1, 3, 4), None, 1, "twice"),
        ("abcq", (1, 3, 4), None, 1, "not in the call"),
        ("abc", (1, 3), None, 1, "3 places for 4"),
        ("abcd", (2, 4), None, 1, "groups end"),
        ("xbcda", (1, 3, 5), "x", 1, "places 1 to 1"),
        ("abxdc", (1, 3, 5), "x", 1, "places 2 to 3"),
        ("abcyd", (1, 3, 5), "x", 1, "places 4 to 5"),
    ],
)
def test_other_pages_are_told_why(row: str, ends: tuple[int, ...], challenger: str, round_: int, why: str) -> None:
    assert why in str(fault(row, ends, challenger, round_))


def test_an_item_that_is_compared_without_being_shown_may_have_left_the_call() -> None:
    page = Proposal(["a", "b", "c", "d", "gone"], (1, 3, 5), "gone", 1)
    assert check_page(LEADER, ITEMS, page).fault is None
    shown = Proposal(["a", "b", "c", "gone", "d"], (1, 3, 5), "gone", 1)
    assert "not in the call" in str(check_page(LEADER, ITEMS, shown).fault)
