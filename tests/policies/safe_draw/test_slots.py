"""The slot form of safe-draw: its law by enumeration, late feedback, items that come and go, growth."""

import math
import os
import subprocess
import sys
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from saferank.policies.safe_draw.draw import odds_of_exchange
from saferank.policies.safe_draw.large import _board, leader_of, outlook_of
from saferank.policies.safe_draw.large_plan import NO_SLOT, NO_SLOT_FLAT, WITH_SLOT, largest_price, price_of
from saferank.policies.shared.derivation import derive_reference
from saferank.randomness import stream
from saferank.statistics.bets import with_room as bets_with_room
from saferank.statistics.certificates import certify_over, surely
from saferank.verbs import NO_ITEM, Impression, choose, freeze, has_room
from tests.policies.at_work import AtWork
from tests.policies.safe_draw.slot_pages import (
    certificates_of,
    contrary_users,
    empty_page,
    one_minded_users,
    random_users,
    started,
)


def played(n_items: int, n_positions: int, pages: int, seed: int, rule: str = "anytime:0.3") -> AtWork:
    """The policy after some pages."""
    state = started(n_items, n_positions, rule)
    rng, page, users = stream(seed, "played"), empty_page(n_positions), one_minded_users(seed, n_items)
    for number in range(pages):
        state.choose(rng, page)
        state.learn(page, users(number, page.shown.tolist()))
    return state


def drawn(state: AtWork, rng: Any, page: Impression) -> None:
    """A page of the plan as it is."""
    choose(state.policy, state.evidence, state.plan, rng, page)


def note_exchanges_of(state: AtWork, page: Impression, place: int) -> None:
    """Freeze one place."""
    wanted = np.zeros(len(page.shown), np.int64)
    wanted[place] = 1
    freeze(state.policy, state.evidence, state.plan, page, wanted)


@pytest.mark.parametrize(("n_items", "n_positions"), [(20, 20), (30, 30), (50, 50), (30, 20), (100, 20)])
def test_pages_are_drawn_however_long_they_are(n_items: int, n_positions: int) -> None:
    """A page of the plan's own order, shown because no drawn one was safe, teaches nothing about it: few are."""
    state = started(n_items, n_positions, "anytime:1e-5")
    rng, page, by_draw = stream(1, "long"), empty_page(n_positions), 0
    users = one_minded_users(1, n_items)
    for number in range(320):
        state.choose(rng, page)
        by_draw += int(page.weight[0] > 0.0)
        state.learn(page, users(number, page.shown.tolist()))
    assert by_draw > 0.8 * 320


# --- the law of a page ---


def order_chances(state: AtWork, variant: int, slot: int) -> dict[tuple[int, ...], float]:
    """The law of the order of a variant: Plackett-Luce, given that the page is safe with every item in the slot."""
    plan, size, board = state.draw, len(state.draw.page) - int(slot != NO_ITEM), _board(state.evidence, state.plan)
    chances = {}
    for numbers in permutations(range(size)):
        row = [int(plan.order[variant, number]) for number in numbers]
        weights = [float(plan.weight[variant, number]) for number in numbers]
        occupants = [NO_ITEM, int(plan.defender[0])]
        pages = [[*row[:slot], x, *row[slot:]] for x in occupants] if slot != NO_ITEM else [row]
        if all(price_of(board, np.array(page)) <= largest_price(board) for page in pages):
            chances[tuple(row)] = math.prod(weights[k] / sum(weights[k:]) for k in range(size))
    return {row: chance / sum(chances.values()) for row, chance in chances.items()}


def variant_of(state: AtWork, page: Impression, slot: int) -> int:
    """The variant of the plan from which a page was drawn."""
    if slot != NO_ITEM:
        return WITH_SLOT
    draw, size = state.draw, len(state.draw.page)
    flat = int(page.ranking[int(np.argmax(page.weight[:size]))]) == draw.order[NO_SLOT_FLAT, 0]
    flat &= sorted(page.weight[:size]) == sorted(draw.weight[NO_SLOT_FLAT])
    return NO_SLOT_FLAT if flat else NO_SLOT


def without_slot(page: Impression, n_positions: int) -> tuple[tuple[int, ...], int]:
    """The items of the order, and the place of the slot."""
    slot = int(page.start[n_positions]) if page.places[0] > n_positions else NO_ITEM
    return tuple(int(page.ranking[place]) for place in range(n_positions) if place != slot), slot


def exchanged(row: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    return tuple(j if item == i else i if item == j else item for item in row)


@pytest.mark.parametrize("seed", range(12))
def test_exchanges_and_odds_are_those_of_the_law(seed: int) -> None:
    """Compared with all orders that a plan can draw; both that some exchange is impossible and that a slot occurs."""
    state = played(8, 5, 20 * seed, seed)
    rng, page = stream(seed, "law"), empty_page(5)
    for _ in range(12):
        drawn(state, rng, page)
        row, slot = without_slot(page, 5)
        chances = order_chances(state, variant_of(state, page, slot), slot)
        for a in range(5):
            note_exchanges_of(state, page, a)
            for b in range(int(page.places[0])):
                possible = bool(int(page.exchanges[a]) >> b & 1)
                i, j = int(page.ranking[a]), int(page.ranking[b])
                if a == b or (a == slot) != (b == slot or b >= 5):
                    assert not possible
                elif a == slot:
                    assert possible
                    expected = page.weight[a] / (page.weight[a] + page.weight[b])
                    assert odds_of_exchange(page, 5, (a, b), False) == pytest.approx(expected, rel=1e-15)
                else:
                    other = chances.get(exchanged(row, i, j), 0.0)
                    assert possible == (other > 0.0)
                    expected = chances[row] / (chances[row] + other)
                    assert not possible or odds_of_exchange(page, 5, (a, b), False) == pytest.approx(expected, rel=1e-9)


def test_pages_come_as_often_as_the_law_says() -> None:
    """Chi-square of 20,000 pages of one plan against the law; fails for a right sampler with probability 1e-4."""
    state = played(9, 5, 0, 3)
    rng, page, seen = stream(5, "pages"), empty_page(5), dict[tuple[tuple[int, ...], int], int]()
    plan = state.draw
    plan.slot[0], plan.share[0] = 4, 1.0  # lower than it could be, which leaves room for some orders; always a race
    plan.threshold[0] = 0.0  # which is on
    chances, weights = order_chances(state, WITH_SLOT, 4), [1.0, *plan.chance[:3].tolist()]
    assert plan.contenders[0] == 3 and 3 < len(chances) < math.factorial(4)
    for _ in range(20_000):
        drawn(state, rng, page)
        row, slot = without_slot(page, 5)
        seen[row, int(page.ranking[slot])] = seen.get((row, int(page.ranking[slot])), 0) + 1
    occupants = [int(plan.defender[0]), *plan.contender[:3].tolist()]
    law = {
        (row, item): chance * weight / sum(weights)
        for row, chance in chances.items()
        for item, weight in zip(occupants, weights, strict=True)
    }
    assert set(seen) <= set(law)
    counts = np.array([seen.get(key, 0) for key in law])
    assert stats.chisquare(counts, 20_000 * np.array(list(law.values()))).pvalue > 1e-4


def test_a_page_that_no_draw_makes_safe_is_the_plans_order_and_compares_nothing_in_it() -> None:
    state = started(40, 20)
    rng, page = stream(1, "narrow"), empty_page(20)
    state.draw.share[:], state.limit[0] = 0.0, 0  # no slot, nothing but R
    state.draw.weight[:] = np.arange(1, 21) ** 3.0  # the last ones first
    drawn(state, rng, page)
    row, slot = without_slot(page, 20)
    assert (row, slot) == (tuple(range(20)), NO_ITEM)
    for a in range(20):
        note_exchanges_of(state, page, a)
        assert page.exchanges[a] == 0


# --- late feedback ---


@pytest.mark.parametrize("kind", ["random", "contrary"])
def test_frozen_pages_are_learnt_like_fresh_ones(kind: str) -> None:
    """When nothing is learnt in between."""
    states = []
    for frozen in (False, True):
        state = started(14, 5)
        users = random_users(4, 5) if kind == "random" else contrary_users(state)
        rng, page = stream(8, "frozen"), empty_page(5)
        for number in range(600):
            state.choose(rng, page)
            if frozen:
                state.freeze(page)
            state.learn(page, users(number, page.shown.tolist()), frozen=frozen)
        states.append(state)
    fresh, late = states
    assert certificates_of(fresh) == certificates_of(late) != set()
    np.testing.assert_array_equal(fresh.duels.capital, late.duels.capital)
    np.testing.assert_array_equal(fresh.reference.row, late.reference.row)


def test_late_feedback_counts_as_the_page_was_issued() -> None:
    """A frozen page gives the same bets when nothing of it would be safe any more."""
    state = started(30, 6)
    rng, page, clicks = stream(2, "late"), empty_page(6), np.array([1, 0, 1, 0, 0, 1])
    while page.places[0] > 6 or page.places[0] == 0:  # a page without slot has more to exchange
        state.choose(rng, page)
    state.freeze(page)
    state.limit[0] = -100
    state.learn(page, clicks, frozen=True)
    assert int(state.duels.pairs.wins.sum()) == 9
    state.learn(page, clicks)
    assert int(state.duels.pairs.wins.sum()) == 9


# --- items come and go, production changes ---


def certify(state: AtWork, *pairs: tuple[int, int]) -> None:
    for i, j in pairs:
        certify_over(state.duels.closure, i, j)
    derive_reference(state.reference, state.duels.closure, state.present)


def test_an_item_that_beats_all_earns_a_pair_for_each() -> None:
    state = started(14, 5)
    certify(state, *((9, item) for item in range(5)))
    assert leader_of(state.plan).tolist() == [9, 0, 1, 2, 3]
    assert (int(state.limit[0]), int(state.reference.income[0])) == (11, 5)


def test_distant_exchanges_count_what_is_between() -> None:
    """4 over 2 over 0, production (0, 1, 2, 3, 4): 0 and 4 are exchanged, and both pairs with 2 are put right."""
    state = started(14, 5)
    certify(state, (4, 2), (2, 0))
    # place 3 (item 2) is the lowest with a better item below: (0,1,4,3,2), +1; then 0 with 4: (4,1,0,3,2), +1;
    # then place 3 (item 0) with 2: (4,1,2,3,0), +1
    assert leader_of(state.plan).tolist() == [4, 1, 2, 3, 0]
    assert state.reference.income[0] == 3


def test_removal_derives_the_reference_from_productions_ranking() -> None:
    """The exchange of 0 and 4 leaves 0 below 1, 2 and 3 without a certificate; without 0 production's order is back."""
    state = started(14, 5)
    certify(state, (4, 0))
    assert leader_of(state.plan).tolist() == [4, 1, 2, 3, 0]
    state.appeal.clicks[0] = 7.0
    state.call([1, 2, 3, 4, 5], list(range(6, 14)))
    assert leader_of(state.plan).tolist() == [1, 2, 3, 4, 5]
    assert (state.reference.income[0], state.limit.tolist()) == (0, [10, 13])
    assert surely(state.duels.closure, 4, 0)
    state.call([1, 2, 3, 4, 5], [0, *range(6, 16)])
    assert leader_of(state.plan).tolist() == [1, 2, 3, 4, 5]
    assert (state.appeal.clicks[0], len(state.guesses.guess), state.limit.tolist()) == (7.0, 16, [13, 16])


def test_another_ranking_of_productions_is_changed_by_the_same_certificates() -> None:
    state = started(14, 3)
    certify(state, (9, 2), (9, 7))
    state.call([7, 1, 2], [item for item in range(14) if item not in (7, 1, 2)])
    assert leader_of(state.plan).tolist() == [9, 7, 1] or leader_of(state.plan).tolist() == [9, 1, 7]
    assert surely(state.duels.closure, 9, 2)
    assert not surely(state.duels.closure, 2, 9)


# --- size ---


@pytest.mark.parametrize("size", [(13, 1), (13, 13), (14, 13), (60, 50), (1000, 50)], ids=str)
def test_extreme_sizes_play(size: tuple[int, int]) -> None:
    state = played(*size, 120, 1, "anytime:0.3")
    assert len(set(leader_of(state.plan).tolist())) == size[1]
    assert outlook_of(state.plan).note


def test_tables_grow_without_changing_anything() -> None:
    """The same pages from a state with little room and from one with plenty."""
    ends = []
    for places in (0, 60):
        state = started(200, 6)
        state.evidence = state.evidence._replace(duels=bets_with_room(state.duels, places))
        rng, page, users, before = stream(1, "grow"), empty_page(6), random_users(1, 6), len(state.duels.pairs.low)
        for number in range(4000):
            state.choose(rng, page)
            assert has_room(state.policy, state.evidence, len(page.ranking))
            state.learn(page, users(number, page.shown.tolist()))
        assert places or len(state.duels.pairs.low) > before
        ends.append((leader_of(state.plan).tolist(), certificates_of(state)))
    assert ends[0] == ends[1]


RUN = """
import numpy as np
from saferank.click_models.pbm import PBM
from saferank.instances import Instance
from saferank.simulation.experiment import Plan, cells_of, run
attraction = np.linspace(0.9, 0.1, 30)[np.random.default_rng(0).permutation(30)]
world = Instance("w", PBM(attraction, np.linspace(1, 0.4, 6)), "pbm", tuple("abcdefghijklmnopqrstuvwxyz0123"))
plan = Plan(("safe-draw:slots",), 6, rounds=400, repetitions=1, rule="anytime:0.3", checkpoints=(1, 100, 400))
print([float(x).hex() for x in run(cells_of([world], plan)[0], 0).ravel()])
"""


@pytest.mark.soak  # compiled once more for its worlds: most of a minute
def test_compiled_and_interpreted_runs_agree_to_the_last_digit() -> None:
    outputs = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-c", RUN], env=environment, capture_output=True, text=True, check=False
        )
        assert finished.returncode == 0, finished.stderr[-2000:]
        outputs.append(finished.stdout)
    assert outputs[0] == outputs[1]
