"""The check of a page: everything the policies make passes; by brute force, nothing that a possible truth forbids."""

import itertools
import os
import random
from collections.abc import Sequence

import numpy as np
import pytest

from saferank.policies import POLICIES
from saferank.safety import whole_allowance
from saferank.service.knowledge.certified import Certified, Leader, leaders
from saferank.service.knowledge.page_check import CheckedCall, _added, _seen, checked, proven_legal
from tests.reference import page_check as by_the_book
from tests.reference.worst_case import worst_case
from tests.service.knowledge.worlds import World

ALL = sorted(kind.name for kind in POLICIES.values() if not kind.missing_to_be_served())
SERVED = ALL if os.environ.get("NUMBA_DISABLE_JIT") == "1" else ["kl-ucb-br", "safe-draw"]
"""All that can be served; where kernels are compiled for each, those that differ most."""


def added_pairs(call: CheckedCall, leader: Leader, page: Sequence[int]) -> int:
    """An upper bound of V(page) - V(leader), pair by pair."""
    return int(_added(_seen(leader, call.present, call.certified.below), page, call.present))


@pytest.mark.parametrize("policy", SERVED)
@pytest.mark.parametrize(("n_items", "k", "pages"), [(7, 3, 200), (14, 4, 200)])
def test_pages_of_every_policy_pass_while_certificates_come_and_production_changes_its_mind(
    policy: str, n_items: int, k: int, pages: int
) -> None:
    world = World(policy, n_items, k, rule="anytime:0.5", seed=3)
    for _ in range(3):
        world.visit(pages)
        world.dice.shuffle(world.base)
    assert len(world.shown) > 10
    assert world.knowledge.certified.pairs


def random_case(dice: random.Random, n_items: int, k: int, n_pairs: int) -> tuple[CheckedCall, list[tuple[int, int]]]:
    """Certificates that agree with a random truth, and production's page."""
    truth = dice.sample(range(n_items), n_items)
    pairs = [tuple(sorted(dice.sample(range(n_items), 2), key=truth.index)) for _ in range(n_pairs)]
    named = [(pair[0], pair[1]) for pair in pairs]
    return CheckedCall(tuple(range(k)), (1 << n_items) - 1, Certified(named)), named


@pytest.mark.parametrize("seed", range(12))
def test_exactly_the_pages_that_no_possible_truth_forbids_pass(seed: int) -> None:
    """Up to 12 items the check is exact: compared with the maximum over all orders, by brute force."""
    dice = random.Random(seed)
    n_items, k = dice.choice([(5, 2), (5, 3), (6, 2)])
    call, pairs = random_case(dice, n_items, k, dice.randrange(0, 6))
    limit = whole_allowance(n_items, k)
    verdicts = set()
    for page in itertools.permutations(range(n_items), k):
        worst = worst_case(n_items, set(pairs), list(call.base), list(page))
        assert worst is not None  # the certificates agree with some order
        safe = worst <= limit
        found = checked(call, page)
        assert (found.fault is None) == safe, (pairs, page)
        assert not safe or 100 * worst <= found.used * limit <= 100 * limit, "at most what it says is used"
        verdicts.add(safe)
    assert True in verdicts


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_by_leaders_is_never_below_the_worst_case(seed: int) -> None:
    dice = random.Random(100 + seed)
    n_items, k = dice.choice([(5, 2), (5, 3), (6, 3)])
    call, pairs = random_case(dice, n_items, k, dice.randrange(0, 8))
    for page in itertools.permutations(range(n_items), k):
        worst = worst_case(n_items, set(pairs), list(call.base), list(page))
        assert worst is not None
        for leader in leaders(call.certified, call.base, call.present):
            assert worst <= added_pairs(call, leader, page) - leader.earned


@pytest.mark.parametrize("seed", range(20))
def test_added_pairs_are_counted_as_by_the_book(seed: int) -> None:
    """Any page, any leader, also certificates that contradict each other: the sets count what the pairs count."""
    dice = random.Random(200 + seed)
    n_items = dice.choice([4, 9, 14, 40, 90])
    k = dice.randrange(1, min(n_items, 12))
    pairs = [(dice.randrange(n_items), dice.randrange(n_items)) for _ in range(dice.choice([0, 3, n_items]))]
    certified = Certified([(better, worse) for better, worse in pairs if better != worse])
    absent = set(dice.sample(range(n_items), dice.randrange(0, (n_items - k) // 2 + 1)))
    here = [item for item in range(n_items) if item not in absent]
    call = CheckedCall(tuple(dice.sample(here, k)), sum(1 << item for item in here), certified)
    for _ in range(60):
        page = dice.sample([*call.base, *here[: dice.randrange(1, 6)]], k)
        if len(set(page)) < k:
            page = dice.sample(here, k)
        for leader in leaders(certified, call.base, call.present):
            expected = by_the_book.added_pairs(certified.surely, here, leader.row, page)
            assert added_pairs(call, leader, page) == expected, (pairs, call.base, page)


def test_pages_with_strangers_or_the_same_item_twice_are_refused() -> None:
    call = CheckedCall((0, 1, 2), 0b11011111, Certified())
    for page, why in [((0, 1, 1), "different"), ((0, 1), "different"), ((0, 1, 5), "not in the call")]:
        assert why in str(checked(call, page).fault)
    assert "not in the call" in str(checked(call, (0, 1, 99)).fault)
    assert checked(call, (0, 1, 2)) == (None, 0)


def test_two_new_items_are_too_much_for_a_large_catalogue_until_they_are_certified() -> None:
    call = CheckedCall(tuple(range(4)), (1 << 40) - 1, Certified())
    assert checked(call, (0, 1, 2, 30)).fault is None
    assert "wrong pairs" in str(checked(call, (0, 1, 30, 31)).fault)
    beaten = [(winner, loser) for winner in (30, 31) for loser in (2, 3)]
    assert checked(call._replace(certified=Certified(beaten)), (0, 1, 30, 31)).fault is None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proven_for_many_pages_at_once_is_what_the_check_of_one_finds(seed: int) -> None:
    """Up to 12 items the check of one page has a proof more."""
    dice = random.Random(seed)
    verdicts = set()
    for n_items, k, n_pairs in ((6, 3, 4), (14, 4, 0), (14, 4, 12), (40, 5, 60), (70, 4, 9)):
        call, _ = random_case(dice, n_items, k, n_pairs)
        call = call._replace(present=call.present & ~(1 << n_items - 1))
        pages = [list(call.base)] * 2 + [dice.sample(range(n_items), k) for _ in range(200)]
        pages += [[*page[:-1], page[0]] for page in pages[:20]] + [[-1, *page[1:]] for page in pages[:20]]
        swapped = [dice.sample(range(k), k) for _ in range(200)]
        pages += [[call.base[place] for place in places] for places in swapped]
        proven = proven_legal(call, np.array(pages))
        for page, found in zip(pages, proven.tolist(), strict=True):
            legal = checked(call, page).fault is None
            assert found <= legal, (n_items, page)
            if 12 < n_items <= 64 and page != list(call.base):
                assert found == legal, (n_items, page)
            verdicts.add((found, legal))
    assert {(True, True), (False, False)} <= verdicts
