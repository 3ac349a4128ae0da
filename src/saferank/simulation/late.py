"""The compiled loop of worlds beyond the paper's: late and lost feedback, another screen, other rewards.

It is a loop of its own, so that ``rounds.play`` stays as fast as it is. With everything switched off both give the same
numbers to the last digit. Feedback that is due after page t is learnt when page t has been issued, pages in the order
in which they were issued; a delay of 0 is the usual world. What is lost, and how late it is, comes from a third random
stream, which takes the same number of words for every page: whether it is lost, its delay, and one for each position.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words, uniform
from saferank.safety import violates
from saferank.simulation.feedback import FeedbackTerms
from saferank.simulation.rewards import reward
from saferank.simulation.rounds import Table, Tally, World, count_wrong, next_checkpoint, next_page, write_row
from saferank.simulation.users import next_user
from saferank.verbs import (
    Floats,
    Impression,
    Ints,
    Items,
    click,
    follow,
    freeze,
    has_room,
    learn,
    new_impression,
    plan_has_room,
)

NOWHERE = -1


class Awaited(NamedTuple):
    """Pages whose clicks are on their way: slot t mod n for page t, and for each round a chain of those due then."""

    numbers: Ints  # [slot, 3] round, places, challenger
    ranking: Items  # [slot, place], and so on: see ``Impression``
    start: Ints
    end: Ints
    weight: Floats
    exchanges: Ints
    clicks: Ints  # [slot, position]
    following: Ints  # [slot] the next slot of its chain, or NOWHERE
    first: Ints  # [round mod n] the first slot of the chain, or NOWHERE
    last: Ints  # [round mod n]
    arriving: Ints  # [1] 1 while pages due after the newest page have not all been learnt
    page: Impression  # where a page lies while it is learnt
    every: Ints  # [position] 1: all places are frozen
    screen: Items  # [place of the screen] what users see
    seen: Ints  # [place of the screen] where they click
    rng: Words


def new_awaited(n_slots: int, n_positions: int, n_places: int, rng: Words) -> Awaited:
    """Nothing on its way; a delay of up to ``n_slots`` - 1 has room."""
    page = new_impression(n_positions, n_places)
    size = (n_slots, len(page.ranking))
    return Awaited(
        numbers=np.zeros((n_slots, 3), np.int64),
        ranking=np.zeros(size, np.uint32),
        start=np.zeros(size, np.int64),
        end=np.zeros(size, np.int64),
        weight=np.zeros(size),
        exchanges=np.zeros(size, np.int64),
        clicks=np.zeros((n_slots, n_positions), np.int64),
        following=np.full(n_slots, NOWHERE),
        first=np.full(n_slots, NOWHERE),
        last=np.full(n_slots, NOWHERE),
        arriving=np.zeros(1, np.int64),
        page=page,
        every=np.ones(n_positions, np.int64),
        screen=np.zeros(n_positions, np.uint32),
        seen=np.zeros(n_positions, np.int64),
        rng=rng,
    )


@kernel
def _delay(delays: Floats, number: float) -> int:
    """The first place of the cumulative probabilities that is above ``number``."""
    low, high = 0, len(delays) - 1
    while low < high:
        middle = (low + high) // 2
        if number < delays[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _store(awaited: Awaited, slot: int, page: Impression, clicks: Ints) -> None:
    awaited.numbers[slot, 0], awaited.numbers[slot, 1] = page.round[0], page.places[0]
    awaited.numbers[slot, 2] = page.challenger[0]
    for place in range(len(page.ranking)):
        awaited.ranking[slot, place] = page.ranking[place]
        awaited.start[slot, place], awaited.end[slot, place] = page.start[place], page.end[place]
        awaited.weight[slot, place], awaited.exchanges[slot, place] = page.weight[place], page.exchanges[place]
    for k in range(len(clicks)):
        awaited.clicks[slot, k] = clicks[k]


@kernel
def _fetch(awaited: Awaited, slot: int, clicks: Ints) -> None:
    """Copy the page of a slot to ``awaited.page``."""
    page = awaited.page
    page.round[0], page.places[0] = awaited.numbers[slot, 0], awaited.numbers[slot, 1]
    page.challenger[0] = awaited.numbers[slot, 2]
    for place in range(len(page.ranking)):
        page.ranking[place] = awaited.ranking[slot, place]
        page.start[place], page.end[place] = awaited.start[slot, place], awaited.end[slot, place]
        page.weight[place], page.exchanges[place] = awaited.weight[slot, place], awaited.exchanges[slot, place]
    for k in range(len(clicks)):
        clicks[k] = awaited.clicks[slot, k]


@kernel
def _send(awaited: Awaited, terms: FeedbackTerms, rounds: int, page: Impression, clicks: Ints) -> None:
    """Put the clicks of the page of this round on their way, unless they are lost."""
    n_slots = len(awaited.first)
    lost = uniform(awaited.rng) < terms.lost_pages
    due = (rounds + _delay(terms.delays, uniform(awaited.rng))) % n_slots
    for k in range(len(clicks)):
        if uniform(awaited.rng) < terms.lost_clicks:
            clicks[k] = 0
    if lost:
        return
    slot = rounds % n_slots
    _store(awaited, slot, page, clicks)
    awaited.following[slot] = NOWHERE
    if awaited.first[due] == NOWHERE:
        awaited.first[due] = slot
    else:
        awaited.following[awaited.last[due]] = slot
    awaited.last[due] = slot


@kernel
def _receive(policy: Any, evidence: Any, plan: Any, awaited: Awaited, rounds: int, clicks: Ints) -> bool:
    """Learn the pages due after this round; False when there is no room for all of them."""
    due = rounds % len(awaited.first)
    while awaited.first[due] != NOWHERE:
        if not (has_room(policy, evidence, len(awaited.page.ranking)) and plan_has_room(policy, plan)):
            return False
        slot = awaited.first[due]
        _fetch(awaited, slot, clicks)
        learn(policy, evidence, awaited.page, clicks)
        follow(policy, evidence, plan, awaited.page, clicks, rounds)
        awaited.first[due] = awaited.following[slot]
    return True


@kernel
def _visit(world: World, table: Table, awaited: Awaited, terms: FeedbackTerms) -> None:
    """Show the page on the screen and let a user click; the policy gets the clicks at the positions it knows."""
    for k in range(len(awaited.screen)):
        awaited.screen[k] = table.impression.shown[terms.layout[k]]
    next_user(world.model, table.user_rng, table.page_rng)
    click(world.model, awaited.screen, table.page_rng, awaited.seen)
    for k in range(len(awaited.screen)):
        table.clicks[terms.layout[k]] = awaited.seen[k]


@kernel
def play_late(
    policy: Any,
    evidence: Any,
    plan: Any,
    world: World,
    table: Table,
    tally: Tally,
    awaited: Awaited,
    terms: FeedbackTerms,
    until: int,
) -> None:
    """Play up to round ``until``, or less when there is no room; ``rounds.play`` with feedback on its way."""
    judge, certificates, page = world.judge, table.certificates, table.impression
    share = 1.0 / world.original if world.original > 0.0 else 0.0
    while True:
        if awaited.arriving[0] == 0:
            if tally.rounds[0] >= until or not has_room(policy, evidence, len(page.ranking)):
                return
            next_page(policy, evidence, plan, table.policy_rng, page, tally.rounds[0])
            freeze(policy, evidence, plan, page, awaited.every)
            _visit(world, table, awaited, terms)
            expected = reward(terms.reward, world.model, awaited.screen)
            tally.regret[0] += world.best - expected
            tally.clicks[0] += expected
            tally.clicks[1] += world.original
            tally.clicks[2] = min(tally.clicks[2], expected * share)
            tally.violations[0] += int(violates(judge, page.shown))
            tally.rounds[0] += 1
            _send(awaited, terms, tally.rounds[0], page, table.clicks)
            awaited.arriving[0] = 1
        if not _receive(policy, evidence, plan, awaited, tally.rounds[0], table.clicks):
            return
        awaited.arriving[0] = 0
        count_wrong(tally, judge, certificates)
        if tally.rounds[0] == next_checkpoint(tally):
            write_row(tally, tally.regret[0], tally.violations[0], (tally.clicks[0], tally.clicks[1], tally.clicks[2]))
