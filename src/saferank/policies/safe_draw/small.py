"""safe-draw for at most 12 items: every page is checked against the exact worst case.

Inside, the items of a call have *seats*: production's ranking the first K, the candidates the others in their order.
Plans are in seats, evidence is in item numbers, which stay when items come and go.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements, kernel, seldom
from saferank.policies.registry import Outlook
from saferank.policies.safe_draw.constants import EXCHANGED
from saferank.policies.safe_draw.draw import draw_one, draw_page, mark_target, sum_of
from saferank.policies.safe_draw.learning import SafeDrawEvidence
from saferank.policies.safe_draw.plans import draw_from_plan, note_exchanges, take_call, work_out
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
from saferank.randomness import Words, uniform
from saferank.safety import whole_allowance
from saferank.safety.exchanges import is_safe, safe_exchanges
from saferank.safety.worst_case import (
    Possible,
    change_certainty,
    new_possible,
    page_code,
    with_more_memory,
    worst_case,
)
from saferank.safety.worst_order import number_of_lowest
from saferank.statistics.certificates import surely
from saferank.statistics.epochs import has_epochs
from saferank.verbs import NO_ITEM, Call, Floats, Impression, Ints, Items

ABSENT = -1
"""The seat of an item that is not in the call."""


class SmallPlan(NamedTuple):
    """What follows from the evidence for at most 12 items: their certified order, R, and the weights of the draw."""

    base: Items  # production's ranking
    candidates: Items
    known: Ints  # [3] the changes that it has followed, and the pages that were learnt when weights were worked out
    item: Ints  # by seat
    seat: Ints  # by item, or ABSENT
    reference: Ints  # by place, in seats: R, the ranking with the smallest worst case that certificates give
    worst: Ints  # [1] W(R)
    possible: Possible
    draw: DrawPlan
    renewal: Renewal


def small_plan(evidence: SafeDrawEvidence, call: Call) -> SmallPlan:
    """Room for a plan of this call."""
    n_seats, n_positions = len(call.base) + len(call.candidates), len(call.base)
    item = np.zeros(n_seats, np.int64)
    return SmallPlan(
        base=call.base,
        candidates=call.candidates,
        known=np.zeros(3, np.int64),
        item=item,
        seat=np.zeros(len(evidence.trust.came), np.int64),
        reference=np.arange(n_positions),
        worst=np.zeros(1, np.int64),
        possible=new_possible(n_seats, n_positions, whole_allowance(n_seats, n_positions), few=True),
        draw=new_plan(n_seats, n_positions),
        renewal=new_renewal(item),
    )


def for_many_pages(plan: SmallPlan) -> SmallPlan:
    """The same plan, which remembers more of the pages that were looked at."""
    return plan._replace(possible=with_more_memory(plan.possible))


@implements(take_call, SmallPlan)
@seldom
def _take_call(plan: SmallPlan, evidence: SafeDrawEvidence) -> None:
    n_positions = len(plan.base)
    for item in range(len(plan.seat)):
        plan.seat[item] = ABSENT
    for seat in range(len(plan.item)):
        plan.item[seat] = plan.base[seat] if seat < n_positions else plan.candidates[seat - n_positions]
        plan.seat[plan.item[seat]] = seat
    if has_epochs(evidence.duels):  # certificates have to be earned again
        plan.possible.limit[2] = 0
    _follow_certificates(plan, evidence, True)


@implements(work_out, SmallPlan)
@seldom
def _work_out(plan: SmallPlan, policy: Any, evidence: SafeDrawEvidence) -> None:
    added, taken = evidence.changes[0] != plan.known[0], evidence.changes[1] != plan.known[1]
    if added or taken:
        _follow_certificates(plan, evidence, taken)
    make_plan(policy, evidence, plan)


@seldom
def _follow_certificates(plan: SmallPlan, evidence: SafeDrawEvidence, fewer: bool) -> None:
    """Note what follows from the certificates that hold for the items of the call, and derive R from the base."""
    possible, n_seats = plan.possible, len(plan.item)
    change_certainty(possible, fewer)
    for x in range(n_seats):
        for z in range(n_seats):
            if surely(evidence.duels.closure, plan.item[x], plan.item[z]):
                possible.worse[x] |= 1 << z
                possible.better[z] |= 1 << x
    for place in range(len(plan.reference)):
        plan.reference[place] = place
    improve_reference(board_of(plan))


@implements(draw_from_plan, SmallPlan)
def _page(plan: SmallPlan, policy: Any, evidence: SafeDrawEvidence, rng: Words, impression: Impression) -> None:
    draw = plan.draw
    variant = draw_one(rng, draw.chance, len(draw.chance)) if draw.chance[ORDINARY] < 1.0 else ORDINARY
    if variant == LEVEL:
        _level_out(draw, rng)
        weight, total, targeted = draw.drawn, sum_of(draw.drawn, len(draw.drawn)), False
    else:
        weight, total = draw.weight[variant], draw.total[variant]
        targeted = variant < RESERVED and draw.target[0] != NO_ITEM
    seats, items = draw.seats[variant // 2], draw.items[variant // 2]
    while True:
        draw_page(rng, weight, total, draw.left, draw.page)
        if targeted:
            _exchange_target(draw, seats, rng)
        if is_safe(plan.possible, _code_drawn(draw.page, seats)):
            break
    _fill_in(draw, impression, items, weight)
    if targeted:
        mark_target(impression, plan.item[draw.target[0]], plan.item[draw.target[1]])


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
def _fill_in(plan: DrawPlan, impression: Impression, items: Ints, weight: Floats) -> None:
    """The page that was drawn, then the hidden items; all are compared with all."""
    size, hidden = len(weight), len(weight) - 1
    impression.places[0], impression.challenger[0] = size, NO_ITEM
    for step in range(size):  # from the last one up, without branches: what is shown is written over
        number = size - 1 - step
        impression.ranking[hidden], impression.weight[hidden] = items[number], weight[number]
        hidden -= int(plan.left[number] > 0.0)
    for place in range(len(plan.page)):
        number = plan.page[place]
        impression.ranking[place], impression.weight[place] = items[number], weight[number]
    for place in range(size):
        impression.start[place], impression.end[place] = 0, size
        impression.exchanges[place] = 0


@kernel
def _code_of(seat: Ints, page: Items) -> int:
    """A page as a word of seats."""
    code = 0
    for place in range(len(page)):
        code |= seat[page[place]] << (4 * place)
    return code


@implements(note_exchanges, SmallPlan)
def _freeze(plan: SmallPlan, evidence: SafeDrawEvidence, impression: Impression, places: Ints) -> None:
    """Note for the places that are asked for with which others they may be exchanged."""
    code = -1
    for place in range(len(places)):
        if places[place]:
            if code < 0:
                code = _code_of(plan.seat, impression.ranking[: len(places)])
                for other in range(impression.places[0]):
                    plan.draw.place[plan.seat[impression.ranking[other]]] = other
            seats = safe_exchanges(plan.possible, code, place)
            while seats:
                impression.exchanges[place] |= 1 << plan.draw.place[number_of_lowest(seats)]
                seats &= seats - 1


def leader_of(plan: SmallPlan) -> Ints:
    """R in items."""
    leader: Ints = plan.item[plan.reference]
    return leader


def worst_of(plan: SmallPlan, evidence: SafeDrawEvidence, shown: Items) -> int:
    """W of a page."""
    return int(worst_case(plan.possible, page_code(plan.seat[shown])))


def outlook_of(plan: SmallPlan) -> Outlook:
    """What the plan does, in words."""
    draw, n_positions = plan.draw, len(plan.reference)
    working = tuple(plan.item[draw.order[0]].tolist())
    moved = int((draw.order[0] != plan.reference).sum())
    note = f"draws around an order that differs from the leader at {moved} of {n_positions} positions"
    if draw.chance[LEVEL] > 0.0:
        note += f"; one item from outside on a level with the last two on {100 * draw.chance[LEVEL]:.0f} % of the pages"
    note += f"; at most {plan.possible.limit[0]} wrong pairs more than production's ranking"
    if draw.target[0] == NO_ITEM:
        return Outlook(note, working=working)
    better, worse = plan.item[draw.target].tolist()
    note += "; exchanges two items now and then, whose certificate is to be earned again"
    return Outlook(note, worse, against=better, working=working)
