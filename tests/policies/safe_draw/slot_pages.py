"""Plays the slot form of safe-draw on a few items and asks of every page how bad it may be, over all linear orders."""

from collections.abc import Callable
from functools import cache

import numpy as np

from saferank.policies import Setup, policy_kind
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.verbs import Impression, Ints, new_impression
from tests.policies.all_orders import consistent, worst_excess
from tests.policies.at_work import AtWork

NAME = "safe-draw:slots"
LOOSE = "anytime:0.3"

Users = Callable[[int, list[int]], Ints]
"""Clicks on a page, given its number and its items."""


def started(n_items: int, n_positions: int, rule: str = LOOSE, trust: float = 0.5) -> AtWork:
    """The policy with the slot plan, however few items there are."""
    return AtWork(policy_kind(NAME), Setup(n_items, n_positions, decision_rule(rule), trust=trust))


def empty_page(n_positions: int) -> Impression:
    return new_impression(n_positions, n_positions + 3)


def certificates_of(state: AtWork) -> set[tuple[int, int]]:
    kept = state.duels.certificates
    given = int(kept.given[0])
    return set(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))


@cache
def _worst(n_items: int, certificates: frozenset[tuple[int, int]], base: tuple[int, ...], page: tuple[int, ...]) -> int:
    orders = consistent(n_items, set(certificates))
    assert len(orders), "certificates contradict one another"
    return worst_excess(orders, list(base), list(page))


def worst_of_page(state: AtWork, page: list[int]) -> int:
    """V(page) - V(production's ranking) at worst. Absent items count for neither."""
    here = np.flatnonzero(state.present).tolist()
    number = {item: place for place, item in enumerate(here)}
    known = {(i, j) for i in here for j in here if i != j and _is_over(state, i, j)}
    pairs = frozenset((number[i], number[j]) for i, j in known)
    base = tuple(number[int(item)] for item in state.reference.base)
    return _worst(len(here), pairs, base, tuple(number[item] for item in page))


def _is_over(state: AtWork, i: int, j: int) -> bool:
    """By a search through the certificates, not by our closure."""
    certificates, seen, waiting = certificates_of(state), {i}, [i]
    while waiting:
        upper = waiting.pop()
        below = {worse for better, worse in certificates if better == upper} - seen
        if j in below:
            return True
        seen |= below
        waiting += below
    return False


def allowance(state: AtWork) -> float:
    return int(state.present.sum()) - len(state.plan.base) / 2


def random_users(seed: int, n_positions: int) -> Users:
    """Click anything."""
    random = np.random.default_rng(seed)
    return lambda number, page: (random.random(n_positions) < 0.4).astype(np.int64)


def one_minded_users(seed: int, n_items: int, *, turn_every: int | None = None) -> Users:
    """Click the best item of the page by an order of their own, which may turn round; one click in ten is at random."""
    random = np.random.default_rng(seed)
    liking = random.permutation(n_items)

    def click(number: int, page: list[int]) -> Ints:
        turned = turn_every is not None and number // turn_every % 2 == 1
        wanted = -liking[page] if turned else liking[page]
        clicks: Ints = (wanted == wanted.max()).astype(np.int64)
        if random.random() < 0.1:
            clicks[random.integers(len(page))] ^= 1
        return clicks

    return click


def contrary_users(state: AtWork) -> Users:
    """Click every item of the page that production has below or outside: whatever is certified costs most."""
    place = state.reference.place.copy()
    return lambda number, page: np.array([int(place[item] >= len(page) - 1) for item in page], np.int64)


def excesses(
    state: AtWork,
    users: Users,
    seed: int,
    pages: int,
    mutate: Callable[[AtWork], None] = lambda state: None,
    before_page: Callable[[AtWork], None] = lambda state: None,
) -> list[float]:
    """By how much every page exceeds the allowance at worst.

    ``mutate`` is applied after every certificate, ``before_page`` before every page.
    """
    rng, page, found = stream(seed, "slots"), empty_page(len(state.plan.base)), []
    mutate(state)
    for number in range(pages):
        before_page(state)
        state.choose(rng, page)
        shown = page.shown.tolist()
        found.append(worst_of_page(state, shown) - allowance(state))
        given = len(certificates_of(state))
        state.learn(page, users(number, shown))
        if len(certificates_of(state)) != given:
            mutate(state)
    return found
