"""safe-draw for at most 12 items: every page is checked against the exact worst case.

Inside, the items that are here have *seats*: production's ranking the first K, the candidates the others in their
order. Pages and certificates are in seats, bets and rates in item numbers, which stay when items come and go.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.registry import Outlook, Setup
from saferank.policies.safe_draw.exact_plans import DrawPlan, board_of, improve_reference, make_plan, new_plan
from saferank.policies.shared.draws import draw_page, fill_tails, odds_of, odds_of_exchange
from saferank.randomness import Words
from saferank.safety import whole_allowance
from saferank.safety.exchanges import exchange_is_safe, is_safe, safe_exchanges
from saferank.safety.worst_case import (
    Possible,
    certify_seats,
    is_certain,
    new_possible,
    page_code,
    worst_case,
)
from saferank.safety.worst_order import number_of_lowest
from saferank.statistics.bets import (
    DenseBets,
    HashedBets,
    claim_row,
    has_won,
    new_bets,
    settle_bet,
    with_more_items,
    with_more_rows,
)
from saferank.statistics.duels import crowded, keep_certificate
from saferank.statistics.rates import Rates, new_rates, note_rates, with_more_rates
from saferank.verbs import NOBODY, Flags, Floats, Impression, Ints, Items

ABSENT = -1
"""The seat of an item that is not here."""

STALE = 0
"""A plan that serves so many more pages is to be made again."""


class ExactState(NamedTuple):
    """What is certain, what is known, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    base: Items  # production's ranking
    item: Ints  # by seat
    seat: Ints  # by item, or ABSENT
    reference: Ints  # by place, in seats: R, the ranking with the smallest worst case that certificates give
    worst: Ints  # [1] W(R)
    possible: Possible
    plan: DrawPlan
    rates: Rates
    duels: DenseBets | HashedBets


class Known(NamedTuple):
    """What is known of all items, present or not."""

    round: Ints
    learned: Ints
    rates: Rates
    duels: DenseBets | HashedBets


def start_exact(setup: Setup) -> ExactState:
    """Nothing is known; the first items are production's ranking."""
    rates, bets = new_rates(setup.n_items, setup.n_positions), new_bets(setup.n_items)
    known = Known(np.zeros(1, np.int64), np.zeros(1, np.int64), rates, bets)
    return arranged_exact(known, np.arange(setup.n_positions, dtype=np.uint32), np.ones(setup.n_items, np.bool_))


def from_slots(state: Any) -> Known:
    """What the slot form knows, but for its guesses."""
    return Known(state.round, state.learned, new_rates(len(state.present), len(state.plan.page)), state.duels)


def arranged_exact(known: ExactState | Known, base: Items, present: Flags) -> ExactState:
    """The state for these items and this ranking of production's, with what is known and certified of them."""
    n_items, ranked = len(present), set(base.tolist())
    others = np.array([item for item in np.flatnonzero(present).tolist() if item not in ranked], np.int64)
    item = np.concatenate([base.astype(np.int64), others])
    rates, bets = with_more_rates(known.rates, n_items), with_more_items(known.duels, n_items)
    seat = np.full(len(rates.clicks), ABSENT, np.int64)
    seat[item] = np.arange(len(item))
    state = ExactState(
        round=known.round,
        learned=known.learned,
        base=base.copy(),
        item=item,
        seat=seat,
        reference=np.arange(len(base)),
        worst=np.zeros(1, np.int64),
        possible=new_possible(len(item), len(base), whole_allowance(len(item), len(base))),
        plan=new_plan(len(item), len(base)),
        rates=rates,
        duels=bets,
    )
    _certify_again(state)
    return state


def _certify_again(state: ExactState) -> None:
    """Note what the certificates say of the items that are here, also by way of items that are not."""
    certificates = state.duels.certificates
    size = int(certificates.given[0])
    pairs = zip(certificates.better[:size].tolist(), certificates.worse[:size].tolist(), strict=True)
    beaten: dict[int, set[int]] = {}
    for winner, loser in pairs:  # kept closed, one certificate after the other
        losers = {loser, *beaten.get(loser, ())}
        for item in [winner, *(item for item, below in beaten.items() if winner in below)]:
            beaten.setdefault(item, set()).update(losers)
    for winner, below in beaten.items():
        for loser in below:
            x, z = int(state.seat[winner]), int(state.seat[loser])
            if ABSENT not in (x, z) and not state.possible.worse[x] >> z & 1:
                certify_seats(state.possible, x, z)
    if size:
        improve_reference(board_of(state))


@kernel
def exact_page(state: ExactState, policy: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page, from a new plan if the last one has served its pages."""
    state.round[0] += 1
    if state.plan.pages[0] == STALE:
        make_plan(state, rng)
    draw_from_plan(state.plan, state.possible, rng)
    impression.round[0] = state.round[0]
    fill_in(state.plan, impression)


@kernel
def draw_from_plan(plan: DrawPlan, possible: Possible, rng: Words) -> None:
    """Draw a page from the plan, again until it is safe. K uniform numbers each time."""
    plan.pages[0] -= 1
    while True:
        draw_page(rng, plan.weight, plan.total[0], plan.left, plan.page)
        if is_safe(possible, _code_drawn(plan)):
            break


@kernel
def _code_drawn(plan: DrawPlan) -> int:
    """The page of the numbers that were drawn, as a word of seats. From the last place up, number by number.

    A loop that the compiler turns into vectors would wait for the numbers to be written to memory.
    """
    code, last = 0, len(plan.page) - 1
    for step in range(len(plan.page)):
        code = code << 4 | plan.seats[plan.page[last - step]]
    return code


@kernel
def fill_in(plan: DrawPlan, impression: Impression) -> None:
    """The page that was drawn, then the hidden items; all are compared with all."""
    size, hidden = len(plan.weight), len(plan.weight) - 1
    impression.places[0], impression.challenger[0], impression.frozen[0] = size, NOBODY, 0
    for step in range(size):  # from the last one up, without branches: what is shown is written over
        number = size - 1 - step
        impression.ranking[hidden], impression.weight[hidden] = plan.items[number], plan.weight[number]
        hidden -= int(plan.left[number] > 0.0)
    for place in range(len(plan.page)):
        number = plan.page[place]
        impression.ranking[place], impression.weight[place] = plan.items[number], plan.weight[number]
        plan.page[place] = plan.seats[number]
    for place in range(len(plan.weight)):
        impression.start[place], impression.end[place] = 0, len(plan.weight)
        impression.exchanges[place] = 0


@kernel
def code_of(seat: Ints, n_positions: int, impression: Impression) -> int:
    """The page as a word of seats; -1 for a page of which an item is not here any more."""
    code = 0
    for place in range(n_positions):
        here = seat[impression.ranking[place]]
        if here == ABSENT:
            return -1
        code |= here << (4 * place)
    return code


@kernel
def exact_freeze(state: Any, policy: Any, impression: Impression) -> None:
    """Note for every place with which others it may be exchanged: certificates may come before the clicks do."""
    note_exchanges(state.possible, state.seat, impression)


@seldom
def note_exchanges(possible: Possible, seat: Ints, impression: Impression) -> None:
    """Fill in ``exchanges``."""
    code = code_of(seat, possible.limit[1], impression)
    for a in range(possible.limit[1]):
        x = seat[impression.ranking[a]]
        for b in range(impression.places[0]):
            z = seat[impression.ranking[b]]
            if b != a and exchange_is_safe(possible, code, x, z, (a, b)):
                impression.exchanges[a] |= 1 << b
    impression.frozen[0] = 1


@kernel
def exact_learn(state: ExactState, policy: Any, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page, then keep the certificates that were won by them."""
    state.learned[0] += 1
    if not note_rates(state.rates, impression, clicks):
        return
    fill_tails(impression.weight, state.plan.tails, impression.places[0])
    code, won = code_of(state.seat, len(state.base), impression), False
    clicked = _note_places(state, impression, clicks)
    for place in range(len(clicks)):
        if clicks[place]:
            won |= _settle_place(policy, state, impression, (place, code, clicked))
    if won and _keep_certificates(policy, state, impression, clicks):
        improve_reference(board_of(state))
        state.plan.pages[0] = STALE


@kernel
def _note_places(state: ExactState, impression: Impression, clicks: Ints) -> int:
    """Fill in the places of the seats; returns, as bits, the seats that were clicked."""
    clicked = 0
    for place in range(impression.places[0]):
        seat = state.seat[impression.ranking[place]]
        if seat != ABSENT:
            state.plan.place[seat] = place
    for place in range(len(clicks)):
        seat = state.seat[impression.ranking[place]]
        if seat != ABSENT:
            clicked |= int(clicks[place] != 0) << seat  # no branch, since nobody can predict a click
    return clicked


@kernel
def _open_seat(state: ExactState, x: int, item: int) -> int:
    """The seat of an item if it is here and its order with seat x is not certain, else ABSENT."""
    z = state.seat[item]
    if ABSENT in (x, z) or (state.possible.better[x] | state.possible.worse[x]) >> z & 1:
        return ABSENT
    return int(z)


@kernel
def exchange_odds(tails: Floats, impression: Impression, place: int, other: int) -> float:
    """The odds of an exchange; a page that was issued when there were more items has groups, each drawn by itself."""
    if impression.end[place] == impression.places[0]:
        return odds_of(impression.weight, tails, place, other)
    return odds_of_exchange(impression, len(tails), place, other)


@seldom
def _frozen_exchanges(state: ExactState, impression: Impression, place: int) -> int:
    """As bits, the seats with which a page says that a place may be exchanged, and whose order is not certain."""
    x, seats = state.seat[impression.ranking[place]], 0
    for other in range(impression.places[0]):
        z = _open_seat(state, x, impression.ranking[other])
        if z != ABSENT and impression.exchanges[place] >> other & 1:
            seats |= 1 << z
    return seats


@kernel
def _rivals(state: ExactState, impression: Impression, place: int, code: int) -> int:
    """As bits, the seats with which that of a place is compared."""
    if impression.frozen[0]:
        return _frozen_exchanges(state, impression, place)
    return safe_exchanges(state.possible, code, place) if code >= 0 else 0


@kernel
def _settle_place(policy: Any, state: ExactState, impression: Impression, page: tuple[int, int, int]) -> bool:
    """Bet the item of a clicked place against every item that was not clicked; True when it may have won for good.

    The order of the bets does not matter, since each is about another pair. All odds come first: the processor divides
    for several at a time if there is little in between.
    """
    place, code, clicked = page
    plan, i, won, size = state.plan, impression.ranking[place], False, 0
    rivals = _rivals(state, impression, place, code) & ~clicked
    while rivals:
        other = plan.place[number_of_lowest(rivals)]
        plan.rival[size], plan.odds[size] = other, exchange_odds(plan.tails, impression, place, other)
        rivals &= rivals - 1
        size += 1
    for entry in range(size):
        j = impression.ranking[plan.rival[entry]]
        row = claim_row(state.duels, i, j)
        won |= settle_bet(policy.table, state.duels.book, row, int(i > j), plan.odds[entry])
    return won


@seldom
def _keep_certificates(policy: Any, state: ExactState, impression: Impression, clicks: Ints) -> bool:
    """Certify the pairs of a page whose bets have won, unless what was certified before says otherwise."""
    before = state.possible.version[0]
    for place in range(len(clicks)):
        i = impression.ranking[place]
        for other in range(impression.places[0]):
            j = impression.ranking[other]
            if not clicks[place] or (other < len(clicks) and clicks[other]):
                continue
            z = _open_seat(state, state.seat[i], j)
            if z != ABSENT and has_won(policy.table, state.duels.book, claim_row(state.duels, i, j), int(i > j)):
                keep_certificate(state.duels.certificates, i, j, impression.round[0])
                certify_seats(state.possible, state.seat[i], z)
    return bool(state.possible.version[0] > before)


@kernel
def exact_has_room(state: ExactState) -> bool:
    """True when the pairs of one more page fit."""
    n_items = len(state.item)
    return not crowded(state.duels, n_items * (n_items - 1) // 2)


def with_room(state: ExactState) -> ExactState:
    """The same state with room for the pairs of one more page."""
    while isinstance(state.duels, HashedBets) and not exact_has_room(state):
        state = state._replace(duels=with_more_rows(state.duels))
    return state


def present_items(state: Any) -> Flags:
    """By item: it is here."""
    return np.asarray(state.seat != ABSENT)


def base_of(state: Any) -> Items:
    """Production's ranking."""
    base: Items = state.base
    return base


def leader_of(state: Any) -> Ints:
    """R in items."""
    leader: Ints = state.item[state.reference]
    return leader


def settled(state: Any, i: int, j: int) -> bool:
    """True when i is certified over j, directly or by what follows."""
    x, z = int(state.seat[i]), int(state.seat[j])
    return ABSENT not in (x, z) and bool(is_certain(state.possible, x, z))


def worst_of_newest(state: Any) -> int:
    """W of the newest page."""
    return int(worst_case(state.possible, page_code(state.plan.page)))


def outlook(state: Any) -> Outlook:
    """What the plan does, in words."""
    plan, n_positions = state.plan, len(state.reference)
    moved = int((plan.order != state.reference).sum())
    what = "draws with one item from outside on a level with the last two" if plan.flat[0] else "draws"
    note = f"{what} around an order that differs from the leader at {moved} of {n_positions} positions"
    return Outlook(f"{note}; at most {state.possible.limit[0]} wrong pairs more than production's ranking")
