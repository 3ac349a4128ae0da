"""safe-draw for at most 12 items: every page is checked against the exact worst case.

Inside, the items that are here have *seats*: production's ranking the first K, the candidates the others in their
order. Pages and plans are in seats, evidence is in item numbers, which stay when items come and go.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, seldom
from saferank.policies.registry import Outlook
from saferank.policies.safe_draw.appeal import most_places
from saferank.policies.safe_draw.constants import EXCHANGED, PLACE_PAGES
from saferank.policies.safe_draw.draw import (
    draw_one,
    draw_page,
    fill_tails,
    has_target,
    mark_target,
    odds_of,
    odds_of_exchange,
    sum_of,
)
from saferank.policies.safe_draw.learning import (
    count_learned,
    draw_from_plan,
    fade_guesses,
    follow_bets,
    follow_certificates,
    is_here,
    most_compared,
    note_exchanges,
    settle_bets,
)
from saferank.policies.safe_draw.renewals import Renewal, new_renewal
from saferank.policies.safe_draw.small_plan import (
    LEVEL,
    ORDINARY,
    RESERVED,
    DrawPlan,
    board_of,
    improve_reference,
    make_plan,
    new_plan,
    place_in,
)
from saferank.policies.safe_draw.trust import Trust, trust_with_more
from saferank.policies.shared.derivation import others_in_order, with_more_in_order
from saferank.randomness import Words, uniform
from saferank.safety import whole_allowance
from saferank.safety.exchanges import exchange_is_safe, is_safe, safe_exchanges
from saferank.safety.worst_case import Possible, change_certainty, new_possible, page_code, worst_case
from saferank.safety.worst_order import number_of_lowest
from saferank.statistics.bets import Bets, settle_bet, with_more_items
from saferank.statistics.bets import with_room as bets_with_room
from saferank.statistics.certificates import TAKEN, surely
from saferank.statistics.epochs import has_epochs, is_bet_on, still_counts
from saferank.statistics.pairs import claim_row
from saferank.statistics.rates import Rates, fade_rates, new_rates, note_rates, with_more_rates
from saferank.verbs import NOBODY, Flags, Floats, Impression, Ints, Items

ABSENT = -1
"""The seat of an item that is not here."""


class SmallState(NamedTuple):
    """What is known, what is certain, and the plan of the newest pages."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages learnt from
    base: Items  # production's ranking
    order: Items  # all items in candidate order: that of the newest call, then those that it did not have
    item: Ints  # by seat
    seat: Ints  # by item, or ABSENT
    reference: Ints  # by place, in seats: R, the ranking with the smallest worst case that certificates give
    worst: Ints  # [1] W(R)
    possible: Possible
    plan: DrawPlan
    renewal: Renewal
    rates: Rates
    trust: Trust
    duels: Bets


def arranged(state: Any, base: Items, present: Flags) -> SmallState:
    """The state for these items and this ranking of production's, with what another state knows.

    Rates mean nothing to a state for a large catalogue, and begin again after one.
    """
    n_items, n_positions = len(present), len(base)
    order = with_more_in_order(state.order, n_items)
    item = np.concatenate([base.astype(np.int64), others_in_order(base, present, order)])
    seat = np.full(n_items, ABSENT, np.int64)
    seat[item] = np.arange(len(item))
    rates = state.rates if isinstance(state, SmallState) else new_rates(n_items, most_places(state, n_positions))
    mine = SmallState(
        round=state.round,
        learned=state.learned,
        base=base.copy(),
        order=order,
        item=item,
        seat=seat,
        reference=np.arange(n_positions),
        worst=np.zeros(1, np.int64),
        possible=new_possible(len(item), n_positions, whole_allowance(len(item), n_positions)),
        plan=new_plan(len(item), n_positions),
        renewal=new_renewal(item),
        rates=with_more_rates(rates, n_items),
        trust=trust_with_more(state.trust, n_items),
        duels=with_more_items(state.duels, n_items),
    )
    mine.possible.limit[2] = int(not has_epochs(mine.duels))
    _follow_certificates(mine, TAKEN)
    return mine


@implements(follow_certificates, SmallState)
@seldom
def _follow_certificates(state: SmallState, changed: int) -> None:
    """Note what follows from the certificates that hold for the items that are here, improve R, end the plan.

    R is improved further after more certificates, and derived from production's ranking again after fewer.
    """
    possible, n_seats = state.possible, len(state.item)
    change_certainty(possible, changed == TAKEN)
    for x in range(n_seats):
        for z in range(n_seats):
            if surely(state.duels.closure, state.item[x], state.item[z]):
                possible.worse[x] |= 1 << z
                possible.better[z] |= 1 << x
    for place in range(len(state.reference) if changed == TAKEN else 0):
        state.reference[place] = place
    improve_reference(board_of(state))
    state.plan.stale[0] = 1


@implements(draw_from_plan, SmallState)
def _page(state: SmallState, policy: Any, rng: Words, impression: Impression) -> None:
    plan = state.plan
    state.round[0] += 1
    if plan.stale[0]:
        make_plan(policy, state)
    variant = draw_one(rng, plan.chance, len(plan.chance)) if plan.chance[ORDINARY] < 1.0 else ORDINARY
    if variant == LEVEL:
        _level_out(plan, rng)
        weight, total, targeted = plan.drawn, sum_of(plan.drawn, len(plan.drawn)), False
    else:
        weight, total = plan.weight[variant], plan.total[variant]
        targeted = variant < RESERVED and plan.target[0] != NOBODY
    seats, items = plan.seats[variant // 2], plan.items[variant // 2]
    while True:
        draw_page(rng, weight, total, plan.left, plan.page)
        if targeted:
            _exchange_target(plan, seats, rng)
        if is_safe(state.possible, _code_drawn(plan.page, seats)):
            break
    impression.round[0] = state.round[0]
    _fill_in(plan, impression, seats, items, weight)
    if targeted:
        mark_target(impression, state.item[plan.target[0]], state.item[plan.target[1]])


@kernel
def _level_out(plan: DrawPlan, rng: Words) -> None:
    """Fill in the weights of a flat page: one number from outside, if there is one, is level with the last two."""
    size = len(plan.drawn)
    for number in range(size):
        plan.drawn[number] = plan.weight[LEVEL, number]
    if size > len(plan.page):
        plan.drawn[draw_one(rng, plan.level, size)] = plan.level[size]


@seldom
def _exchange_target(plan: DrawPlan, seats: Ints, rng: Words) -> None:
    """Exchange the two items of the target in the numbers that were drawn, by a coin."""
    if uniform(rng) >= EXCHANGED:
        return
    first, second = place_in(seats, plan.target[0]), place_in(seats, plan.target[1])
    for place in range(len(plan.page)):
        if plan.page[place] == first:
            plan.page[place] = second
        elif plan.page[place] == second:
            plan.page[place] = first
    plan.left[first], plan.left[second] = plan.left[second], plan.left[first]


@kernel
def _code_drawn(page: Ints, seats: Ints) -> int:
    """The page of the numbers that were drawn, as a word of seats. From the last place up, number by number.

    A loop that the compiler turns into vectors would wait for the numbers to be written to memory.
    """
    code, last = 0, len(page) - 1
    for step in range(len(page)):
        code = code << 4 | seats[page[last - step]]
    return code


@kernel
def _fill_in(plan: DrawPlan, impression: Impression, seats: Ints, items: Ints, weight: Floats) -> None:
    """The page that was drawn, then the hidden items; all are compared with all."""
    size, hidden = len(weight), len(weight) - 1
    impression.places[0], impression.challenger[0], impression.frozen[0] = size, NOBODY, 0
    for step in range(size):  # from the last one up, without branches: what is shown is written over
        number = size - 1 - step
        impression.ranking[hidden], impression.weight[hidden] = items[number], weight[number]
        hidden -= int(plan.left[number] > 0.0)
    for place in range(len(plan.page)):
        number = plan.page[place]
        impression.ranking[place], impression.weight[place] = items[number], weight[number]
        plan.page[place] = seats[number]
    for place in range(size):
        impression.start[place], impression.end[place] = 0, size
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


@implements(note_exchanges, SmallState)
@seldom
def _freeze(state: SmallState, policy: Any, impression: Impression) -> None:
    """Note for every place with which others it may be exchanged."""
    possible, seat = state.possible, state.seat
    code = code_of(seat, possible.limit[1], impression)
    for a in range(possible.limit[1]):
        x = seat[impression.ranking[a]]
        for b in range(impression.places[0]):
            z = seat[impression.ranking[b]]
            if b != a and exchange_is_safe(possible, code, x, z, (a, b)):
                impression.exchanges[a] |= 1 << b
    impression.frozen[0] = 1


@implements(settle_bets, SmallState)
def _learn(state: SmallState, policy: Any, impression: Impression, clicks: Ints) -> None:
    count_learned(state)
    if not still_counts(state.duels, impression.round[0]) or not note_rates(state.rates, impression, clicks):
        return
    state.trust.clicked[0] += 1
    fill_tails(impression.weight, state.plan.tails, impression.places[0])
    code, moved = code_of(state.seat, len(state.base), impression), False
    clicked, renewing = _note_places(state, impression, clicks), has_epochs(state.duels) and has_target(impression)
    for place in range(len(clicks)):
        if clicks[place]:
            moved |= _settle_place(policy, state, impression, (place, code, clicked, len(clicks)), renewing)
    if moved:
        if not impression.frozen[0]:
            _freeze(state, policy, impression)
        follow_bets(policy, state, impression, clicks)


@kernel
def _note_places(state: SmallState, impression: Impression, clicks: Ints) -> int:
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


@seldom
def _frozen_exchanges(state: SmallState, impression: Impression, place: int) -> int:
    """As bits, the seats with which a page says that a place may be exchanged, and whose order is not settled."""
    item, seats = impression.ranking[place], 0
    for other in range(impression.places[0]):
        rival = impression.ranking[other]
        z = state.seat[rival]
        possible = state.seat[item] != ABSENT and z != ABSENT and impression.exchanges[place] >> other & 1
        if possible and is_bet_on(state.duels, item, rival):
            seats |= 1 << z
    return seats


@kernel
def _rivals(state: SmallState, impression: Impression, place: int, code: int) -> int:
    """As bits, the seats with which that of a place is compared."""
    if impression.frozen[0]:
        return _frozen_exchanges(state, impression, place)
    return safe_exchanges(state.possible, code, place) if code >= 0 else 0


@kernel
def _settle_place(
    policy: Any, state: SmallState, impression: Impression, page: tuple[int, int, int, int], renewing: bool
) -> bool:
    """Bet the item of a clicked place against every item that was not clicked; True when something may follow.

    The order of the bets does not matter, since each is about another pair. All odds come first: the processor divides
    for several at a time if there is little in between.
    """
    place, code, clicked, shown = page
    plan, i, moved, size = state.plan, impression.ranking[place], False, 0
    whole = impression.end[place] == impression.places[0] and not renewing  # else it was issued by the other plan
    whole &= shown == len(plan.tails)  # else around other pinned items
    rivals = _rivals(state, impression, place, code) & ~clicked
    while rivals:
        other = plan.place[number_of_lowest(rivals)]
        plan.rival[size] = other
        if whole:
            plan.odds[size] = odds_of(impression.weight, plan.tails, place, other)
        else:
            plan.odds[size] = odds_of_exchange(impression, shown, (place, other), renewing)
        rivals &= rivals - 1
        size += 1
    for entry in range(size):
        j = impression.ranking[plan.rival[entry]]
        row = claim_row(state.duels, i, j)
        moved |= settle_bet(policy.table, state.duels, row, int(i > j), plan.odds[entry], impression.round[0])
    return moved


@implements(is_here, SmallState)
def _is_here(state: SmallState, item: int) -> bool:
    return bool(state.seat[item] != ABSENT)


@implements(fade_guesses, SmallState)
def _fade(state: SmallState, exposure: float) -> None:
    fade_rates(state.rates, exposure, PLACE_PAGES)


@implements(most_compared, SmallState)
def _most_compared(state: SmallState) -> int:
    return len(state.item)


def with_room(state: SmallState) -> SmallState:
    """The same state with room for the pairs of one more page."""
    return state._replace(duels=bets_with_room(state.duels, most_compared(state)))


def present_items(state: SmallState) -> Flags:
    """By item: it is here."""
    return np.asarray(state.seat != ABSENT)


def base_of(state: SmallState) -> Items:
    """Production's ranking."""
    return state.base


def leader_of(state: SmallState) -> Ints:
    """R in items."""
    leader: Ints = state.item[state.reference]
    return leader


def worst_of_newest(state: SmallState) -> int:
    """W of the newest page."""
    return int(worst_case(state.possible, page_code(state.plan.page)))


def outlook(state: SmallState) -> Outlook:
    """What the plan does, in words."""
    plan, n_positions = state.plan, len(state.reference)
    moved = int((plan.order[0] != state.reference).sum())
    note = f"draws around an order that differs from the leader at {moved} of {n_positions} positions"
    if plan.chance[LEVEL] > 0.0:
        note += f"; one item from outside on a level with the last two on {100 * plan.chance[LEVEL]:.0f} % of the pages"
    note += f"; at most {state.possible.limit[0]} wrong pairs more than production's ranking"
    if plan.target[0] == NOBODY:
        return Outlook(note)
    better, worse = state.item[plan.target].tolist()
    note += "; exchanges two items now and then, whose certificate is to be earned again"
    return Outlook(note, worse, against=better)
