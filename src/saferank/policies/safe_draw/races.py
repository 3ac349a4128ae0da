"""Who contends for the slot of a page: the defender d, an item of R, and a race of a few items outside R.

All choices here are proposals. They rest on the appeal th of items (``appeal.py``) and on draws from its law.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.safe_draw.appeal import appeal_of, lead_in_errors, sampled_appeal
from saferank.policies.safe_draw.comparing import is_settled
from saferank.policies.safe_draw.prices import largest_price
from saferank.randomness import Words
from saferank.statistics.closure import surely
from saferank.verbs import NOBODY, Ints

RACERS = 3
"""Members of a race at most."""

_CLEARLY = 1.5
"""A member stays while it leads the defender by more standard errors than this."""

_LOWER = 1.0
"""The defender stays unless another item is lower by more standard errors than this."""


class Race(NamedTuple):
    """The contenders of the newest plan."""

    defender: Ints  # [1] d, or NOBODY before the first race
    member: Ints  # [RACERS]
    size: Ints  # [1] members in use
    next: Ints  # [1] all items with smaller numbers were shown or are absent


def new_race() -> Race:
    """A race without members."""
    size, following = np.zeros((2, 1), np.int64)
    return Race(np.full(1, NOBODY, np.int64), np.zeros(RACERS, np.int64), size, following)


@kernel
def _can_be_hidden(state: Any, place: int) -> bool:
    """True when R, without the item of ``place`` and with any outside item at the last place, is safe."""
    row, price = state.reference.row, state.limit[1] - len(state.reference.row)
    for lower in range(place + 1, len(row)):
        price += int(not surely(state.closure, row[lower], row[place]))
    return bool(price <= largest_price(state))


@kernel
def _weakest(state: Any) -> int:
    """The item of R with the lowest th of those that can be hidden; ties go to the lower place."""
    row, weakest, lowest = state.reference.row, NOBODY, math.inf
    for step in range(len(row)):
        place = len(row) - 1 - step
        th = appeal_of(state.appeal, row[place])
        if th < lowest and _can_be_hidden(state, place):
            weakest, lowest = int(row[place]), th
    return weakest


@kernel
def _choose_defender(state: Any) -> int:
    """The last defender, unless it cannot be hidden any more or the weakest item is clearly lower: then that one."""
    weakest, last = _weakest(state), int(state.race.defender[0])
    if last == NOBODY or state.reference.place[last] == len(state.reference.row):
        return weakest
    stays = _can_be_hidden(state, state.reference.place[last])
    return last if stays and lead_in_errors(state.appeal, last, weakest) <= _LOWER else weakest


@kernel
def _may_race(state: Any, item: int, defender: int) -> bool:
    """True when an item is present, outside R and not settled below the defender."""
    if not state.present[item] or state.reference.place[item] < len(state.reference.row):
        return False
    return not is_settled(state.duels, state.closure, defender, item)


@kernel
def _drop_members(state: Any, defender: int) -> None:
    """Keep the members that may race and that lead the defender clearly, in their order."""
    race, kept = state.race, 0
    for seat in range(race.size[0]):
        item = race.member[seat]
        if _may_race(state, item, defender) and lead_in_errors(state.appeal, item, defender) > _CLEARLY:
            race.member[kept] = item
            kept += 1
    race.size[0] = kept


@kernel
def _is_member(race: Race, item: int) -> bool:
    for seat in range(race.size[0]):  # noqa: SIM110 (numba compiles loops, not generators)
        if race.member[seat] == item:
            return True
    return False


@kernel
def _next_untried(state: Any, defender: int) -> int:
    """The first item in item order that was never shown, may race and is no member; NOBODY if there is none."""
    race, exposure, n_items = state.race, state.appeal.exposure, len(state.present)
    leading, item = True, race.next[0]
    while item < n_items:
        if exposure[item] == 0.0 and state.present[item]:
            leading = False  # an item of R too, which may leave R before it is shown
            if _may_race(state, item, defender) and not _is_member(race, item):
                return int(item)
        item += 1
        if leading:
            race.next[0] = item
    return NOBODY


@kernel
def _recruit(state: Any, rng: Words, defender: int) -> int:
    """The item with the largest draw among the tried ones, in the order of their trial, and the next untried one."""
    appeal, best, largest = state.appeal, NOBODY, -1.0
    untried = _next_untried(state, defender)
    for entry in range(appeal.n_tried[0] + 1):
        item = untried if entry == appeal.n_tried[0] else int(appeal.tried[entry])
        if item != NOBODY and _may_race(state, item, defender) and not _is_member(state.race, item):
            draw = sampled_appeal(appeal, rng, item)
            if draw > largest:
                best, largest = item, draw
    return best


@kernel
def _fill_race(state: Any, rng: Words, defender: int) -> None:
    race = state.race
    while race.size[0] < RACERS:
        item = _recruit(state, rng, defender)
        if item == NOBODY:
            return
        race.member[race.size[0]] = item
        race.size[0] += 1


@kernel
def hold_race(state: Any, rng: Words) -> bool:
    """Choose the defender and the members. True when a fresh draw of some member exceeds the defender's th."""
    race, defender, hopeful = state.race, _choose_defender(state), False
    race.defender[0] = defender
    _drop_members(state, defender)
    _fill_race(state, rng, defender)
    for seat in range(race.size[0]):
        hopeful |= sampled_appeal(state.appeal, rng, race.member[seat]) > appeal_of(state.appeal, defender)
    return hopeful
