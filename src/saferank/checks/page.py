"""The contract of a page, and a page to write on that notices what is written beside it."""

from typing import Any

import numpy as np

from saferank.checks.contract import ContractError, blaming, require
from saferank.plugins import place_of_problem
from saferank.policies import PolicyKind, Setup
from saferank.verbs import NOBODY, Impression, Ints, new_impression

_GUARD = 1_000_003  # stands behind the last place; no item and no place looks like it


class GuardedPage:
    """An impression with exactly the room that the simulator gives, in the middle of memory that must stay as it is."""

    def __init__(self, kind: PolicyKind, setup: Setup) -> None:
        room = kind.places(setup)
        wide = new_impression(setup.n_positions, room + setup.n_items)
        self._margins = [row[room:] for row in (wide.ranking, wide.start, wide.end)]
        for margin in self._margins:
            margin[:] = _GUARD
        ranking = wide.ranking[:room]
        self.impression = wide._replace(
            ranking=ranking, start=wide.start[:room], end=wide.end[:room], shown=ranking[: setup.n_positions]
        )

    def overrun(self) -> bool:
        """True when something was written behind the last place."""
        return any(np.any(margin != _GUARD) for margin in self._margins)


def copied_impression(impression: Impression) -> Impression:
    """The same page in arrays of its own."""
    copies: list[Any] = [field.copy() for field in impression]
    copy = Impression(*copies)
    return copy._replace(shown=copy.ranking[: len(impression.shown)])


def contents_of_page(impression: Impression) -> list[list[int]]:
    """What a page says, without the places that are not in use."""
    places = int(impression.places[0])
    rows = (impression.ranking[:places], impression.start[:places], impression.end[:places])
    return [row.tolist() for row in (impression.round, impression.challenger, *rows)]


def check_page(who: str, page: GuardedPage, setup: Setup, number: int) -> None:
    """Raise a ``ContractError`` unless ``choose() of who`` has filled the page properly as page ``number``."""
    impression, room = page.impression, len(page.impression.ranking)
    counted, places = int(impression.round[0]), int(impression.places[0])
    require(
        not page.overrun(),
        f"{who} writes behind the last place of the page, which has room for {room}. A policy that compares more "
        "than the shown items and one hidden item is registered with compares_all=True.",
    )
    require(
        counted == number,
        f"{who} numbers page {number} as {counted}; impression.round must count the pages issued, from 1 by ones.",
    )
    require(
        setup.n_positions <= places <= room,
        f"{who} uses {places} places for {setup.n_positions} positions; impression.places must be at least the "
        f"number of positions and at most the room, {room}.",
    )
    _check_items(who, impression.ranking[:places].tolist(), setup)
    _check_groups(who, impression.start[:places], impression.end[:places])
    challenger = int(impression.challenger[0])
    require(
        challenger == NOBODY or 0 <= challenger < setup.n_items,
        f"{who} names {challenger} as the challenger, which is neither an item below {setup.n_items} nor NOBODY.",
    )


def _check_items(who: str, ranking: list[int], setup: Setup) -> None:
    shown, strangers = ranking[: setup.n_positions], [item for item in ranking if item >= setup.n_items]
    require(not strangers, f"{who} ranks item {strangers[:1]}, but the items are 0 to {setup.n_items - 1}.")
    require(len(set(shown)) == len(shown), f"{who} shows an item twice: {shown}. A page needs different items.")
    require(
        len(set(ranking)) == len(ranking),
        f"{who} compares a hidden item that has a place already: {ranking}. Lower impression.places, or put a "
        "different item there.",
    )


def _check_groups(who: str, start: Ints, end: Ints) -> None:
    """Groups must tile the places: each begins where the one before ends, and its places agree on its extent."""
    first = 0
    while first < len(start):
        last = int(end[first])
        whole = first < last <= len(end) and np.all(start[first:last] == first) and np.all(end[first:last] == last)
        require(
            bool(whole),
            f"{who} leaves no proper group at place {first}: start is {start.tolist()} and end {end.tolist()}. Every "
            "place in use needs the first place of its group and one past the last, the same for the whole group; a "
            "place on its own has itself and the next.",
        )
        first = last


def check_leader(kind: PolicyKind, state: Any, setup: Setup) -> list[int]:
    """The leader of a state; a ``ContractError`` unless it is a ranking of different items."""
    with blaming(kind.leader):
        return _checked_leader(kind, state, setup)


def _checked_leader(kind: PolicyKind, state: Any, setup: Setup) -> list[int]:
    try:
        leader = [int(item) for item in kind.leader(state)]
    except Exception as problem:
        failed = f"leader() of {kind.name} fails: {type(problem).__name__}: {problem}."
        raise ContractError(
            f"{failed} It must return the items of the best ranking so far.", place_of_problem(problem)
        ) from problem
    require(
        len(leader) >= setup.n_positions and len(set(leader)) == len(leader),
        f"leader() of {kind.name} returns {leader}; it must be at least {setup.n_positions} different items.",
    )
    require(
        all(0 <= item < setup.n_items for item in leader),
        f"leader() of {kind.name} returns {leader}, but the items are 0 to {setup.n_items - 1}.",
    )
    return leader
