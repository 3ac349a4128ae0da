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


class Post(NamedTuple):
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
    arriving: Ints  # [1] 1 while what is due after the newest page has not all been learnt
    desk: Impression  # where a page lies while it is learnt
    every: Ints  # [position] 1: all places are frozen
    screen: Items  # [place of the screen] what users see
    seen: Ints  # [place of the screen] where they click
    rng: Words


def new_post(n_slots: int, n_positions: int, n_places: int, rng: Words) -> Post:
    """Nothing on its way; a delay of up to ``n_slots`` - 1 has room."""
    desk = new_impression(n_positions, n_places)
    size = (n_slots, len(desk.ranking))
    return Post(
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
        desk=desk,
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
def _store(post: Post, slot: int, page: Impression, clicks: Ints) -> None:
    post.numbers[slot, 0], post.numbers[slot, 1] = page.round[0], page.places[0]
    post.numbers[slot, 2] = page.challenger[0]
    for place in range(len(page.ranking)):
        post.ranking[slot, place] = page.ranking[place]
        post.start[slot, place], post.end[slot, place] = page.start[place], page.end[place]
        post.weight[slot, place], post.exchanges[slot, place] = page.weight[place], page.exchanges[place]
    for k in range(len(clicks)):
        post.clicks[slot, k] = clicks[k]


@kernel
def _fetch(post: Post, slot: int, clicks: Ints) -> None:
    """Lay the page of a slot on the desk."""
    page = post.desk
    page.round[0], page.places[0] = post.numbers[slot, 0], post.numbers[slot, 1]
    page.challenger[0] = post.numbers[slot, 2]
    for place in range(len(page.ranking)):
        page.ranking[place] = post.ranking[slot, place]
        page.start[place], page.end[place] = post.start[slot, place], post.end[slot, place]
        page.weight[place], page.exchanges[place] = post.weight[slot, place], post.exchanges[slot, place]
    for k in range(len(clicks)):
        clicks[k] = post.clicks[slot, k]


@kernel
def _send(post: Post, terms: FeedbackTerms, rounds: int, page: Impression, clicks: Ints) -> None:
    """Put the clicks of the page of this round on their way, unless they are lost."""
    n_slots = len(post.first)
    lost = uniform(post.rng) < terms.lost_pages
    due = (rounds + _delay(terms.delays, uniform(post.rng))) % n_slots
    for k in range(len(clicks)):
        if uniform(post.rng) < terms.lost_clicks:
            clicks[k] = 0
    if lost:
        return
    slot = rounds % n_slots
    _store(post, slot, page, clicks)
    post.following[slot] = NOWHERE
    if post.first[due] == NOWHERE:
        post.first[due] = slot
    else:
        post.following[post.last[due]] = slot
    post.last[due] = slot


@kernel
def _receive(policy: Any, evidence: Any, plan: Any, post: Post, rounds: int, clicks: Ints) -> bool:
    """Learn what is due after this round; False when there is no room for all of it."""
    due = rounds % len(post.first)
    while post.first[due] != NOWHERE:
        if not (has_room(policy, evidence, len(post.desk.ranking)) and plan_has_room(policy, plan)):
            return False
        slot = post.first[due]
        _fetch(post, slot, clicks)
        learn(policy, evidence, post.desk, clicks)
        follow(policy, evidence, plan, post.desk, clicks, rounds)
        post.first[due] = post.following[slot]
    return True


@kernel
def _visit(world: World, table: Table, post: Post, terms: FeedbackTerms) -> None:
    """Show the page on the screen and let a user click; the policy gets the clicks at the positions it knows."""
    for k in range(len(post.screen)):
        post.screen[k] = table.impression.shown[terms.layout[k]]
    next_user(world.model, table.user_rng, table.page_rng)
    click(world.model, post.screen, table.page_rng, post.seen)
    for k in range(len(post.screen)):
        table.clicks[terms.layout[k]] = post.seen[k]


@kernel
def play_late(
    policy: Any,
    evidence: Any,
    plan: Any,
    world: World,
    table: Table,
    tally: Tally,
    post: Post,
    terms: FeedbackTerms,
    until: int,
) -> None:
    """Play up to round ``until``, or less when there is no room; ``rounds.play`` with feedback on its way."""
    judge, certificates, page = world.judge, table.certificates, table.impression
    share = 1.0 / world.original if world.original > 0.0 else 0.0
    while True:
        if post.arriving[0] == 0:
            if tally.rounds[0] >= until or not has_room(policy, evidence, len(page.ranking)):
                return
            next_page(policy, evidence, plan, table.policy_rng, page, tally.rounds[0])
            freeze(policy, evidence, plan, page, post.every)
            _visit(world, table, post, terms)
            expected = reward(terms.reward, world.model, post.screen)
            tally.regret[0] += world.best - expected
            tally.clicks[0] += expected
            tally.clicks[1] += world.original
            tally.clicks[2] = min(tally.clicks[2], expected * share)
            tally.violations[0] += int(violates(judge, page.shown))
            tally.rounds[0] += 1
            _send(post, terms, tally.rounds[0], page, table.clicks)
            post.arriving[0] = 1
        if not _receive(policy, evidence, plan, post, tally.rounds[0], table.clicks):
            return
        post.arriving[0] = 0
        count_wrong(tally, judge, certificates)
        if tally.rounds[0] == next_checkpoint(tally):
            write_row(tally, tally.regret[0], tally.violations[0], (tally.clicks[0], tally.clicks[1], tally.clicks[2]))
