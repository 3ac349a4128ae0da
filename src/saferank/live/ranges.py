"""What the arrays of restored evidence and plans may hold.

Compiled code does not check indices, so this is asked before it runs.

A checksum says that bytes are as they were written, not who wrote them. ``RULES`` has for every type of record, and
``FIELDS`` for the fields of evidence and plans themselves, by name, what must be true of each array of whole numbers:
items are items, counters stay within their tables, hashed tables have a free slot, and what is certain does not
contradict itself. Numbers that are not used as an index or as the end of a loop may be anything. A record of a
plug-in's own type is not looked into: no rule is known for it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.saved_state import SavedStateError
from saferank.statistics.certificates import BITS, ENDLESS
from saferank.statistics.tournament import ABSENT, CANDIDATE, RANKED
from saferank.verbs import NO_ITEM, Call, Flags

MOST = ENDLESS
"""Pages, clicks and certificates are counted at most so far; in the service, rounds are milliseconds."""

Holds = Any  # bool or an array of them: all must be true
ANY = True
"""Whatever is there is not used before it is written."""


class Extent(NamedTuple):
    """What evidence or a plan belongs to."""

    n_items: int
    n_positions: int  # without pinned items
    present: Flags  # by item, without pinned ones
    n_round: int  # pages issued


def check_ranges(made: Any, call: Call, issued: int = MOST) -> None:
    """SavedStateError unless every array of evidence, or of the plan of a call, holds what compiled code can work with.

    Evidence belongs to all items that are known; ``issued`` pages are out.
    """
    numbers = np.concatenate([call.base, call.candidates]).astype(np.int64)
    present = np.zeros(1 + int(numbers.max()) if _is_evidence(made) else _items_of(made, numbers), np.bool_)
    present[numbers] = True
    _check(made, Extent(len(present), len(call.base), present, issued), "")


def _is_evidence(made: Any) -> bool:
    return not hasattr(made, "base")


def _items_of(plan: Any, numbers: NDArray[Any]) -> int:
    """How many items a plan has arrays for."""
    by_item = [getattr(plan, name) for name in ("standing", "present", "observed") if hasattr(plan, name)]
    return max(1 + int(numbers.max()), *(len(array) for array in by_item), 0)


def _check(record: Any, n: Extent, path: str) -> None:
    rules = RULES.get(type(record).__name__)
    known: dict[str, Holds] = {} if rules is None else rules(record, n)
    for name, part in zip(record._fields, record, strict=True):
        if isinstance(part, tuple):
            _check(part, n, f"{path}{name}.")
            continue
        rule = None if path else FIELDS.get(name)
        if not np.all(known.get(name, rule is None or rule(part, n))):
            raise SavedStateError(f"{path}{name} of the saved state holds a number that it cannot have")


# --- words of the rules ---


def _within(array: NDArray[Any], low: int, high: int) -> Holds:
    return (array >= low) & (array <= high)


def _items(array: NDArray[Any], n: Extent) -> Holds:
    return _within(array, 0, n.n_items - 1)


def _counts(array: NDArray[Any], n: Extent) -> Holds:
    return _within(array, 0, MOST)


def _ranking(array: NDArray[Any], n: Extent) -> Holds:
    """Different items that are here, as many as a page has; what stands behind them is written before it is read."""
    ranked = array[: n.n_positions]
    if not np.all(_items(ranked, n)) or len(set(ranked.tolist())) < n.n_positions:
        return False
    return n.present[ranked.astype(np.int64)]


def _amounts(array: NDArray[Any]) -> Holds:
    return np.isfinite(array) & (array >= 0.0)


# --- by type ---


def _pairs(r: Any, n: Extent) -> dict[str, Holds]:
    """Every pair adds at most one win a page; a hashed table has as many slots taken as rows, and free ones."""
    rows, used, learnt = len(r.wins) // 2, int(r.used[0]), _within(r.wins, 0, n.n_round)
    if not len(r.slots):
        every = n.n_items * (n.n_items + 1) // 2
        return {"slots": ANY, "low": ANY, "high": ANY, "used": rows >= every and used == rows, "wins": learnt}
    whole = len(r.low) == len(r.high) == rows and len(r.wins) == 2 * rows
    free = len(r.slots) >= 2 * rows and len(r.slots) & (len(r.slots) - 1) == 0
    return {
        "slots": free and _within(r.slots, 0, used - 1) & (np.count_nonzero(r.slots) == used - 1),
        "low": whole and _items(r.low[:used], n),
        "high": whole and _items(r.high[:used], n),
        "used": 1 <= used <= rows,
        "wins": learnt,
    }


def _duels(r: Any, n: Extent) -> dict[str, Holds]:
    """A pair is certified once for each of its items, so the list has room for all."""
    certified = len(r.certified) == len(r.pairs.wins) <= len(r.certificates.better)
    return {"certified": certified and np.count_nonzero(r.certified) == int(r.certificates.given[0])}


def _lifetime_duels(r: Any, n: Extent) -> dict[str, Holds]:
    return {"epoch": _epoch(r.epoch, n)}


def _epoch(epoch: NDArray[Any], n: Extent) -> Holds:
    """When it began, its length, at least one page, and how many pages are expected, if that is asked."""
    return _within(epoch, 0, ENDLESS) & (int(epoch[1]) >= 1)


def _certificates(r: Any, n: Extent) -> dict[str, Holds]:
    given = int(r.given[0])
    listed = len(r.better) == len(r.worse) == len(r.round) == len(r.expires) >= given >= 0
    better, worse = r.better[: max(given, 0)], r.worse[: max(given, 0)]
    return {
        "better": listed and _items(better, n) & (better != worse),
        "worse": listed and _items(worse, n),
        "round": _counts(r.round, n),
        "expires": _within(r.expires, -2 * ENDLESS, 2 * ENDLESS),
        "given": listed,
        "first": _within(r.first, 0, given),
        "alarms": _counts(r.alarms, n),
    }


def _closure(r: Any, n: Extent) -> dict[str, Holds]:
    """Numbers and items belong to each other, and the matrix is a strict order: transitive, and without a circle."""
    capacity, size = len(r.item), int(r.size[0])
    if capacity % BITS or len(r.worse) * BITS != capacity * capacity or not 0 <= size <= capacity:
        return {"size": False}
    item, numbered = r.item[:size], r.number >= 0
    known = np.all(_within(item, 0, len(r.number) - 1)) and np.array_equal(r.number[item], np.arange(size))
    bits = np.unpackbits(r.worse.view(np.uint8), bitorder="little").reshape(capacity, capacity).astype(np.float32)
    over = bits[:size, :size]
    order = not over.diagonal().any() and not bits[size:].any() and not bits[:, size:].any()
    return {
        "number": (r.number >= NO_ITEM) & (np.count_nonzero(numbered) == size),
        "item": known,
        "worse": order and not ((over @ over > 0) & (over == 0)).any(),
        "size": ANY,
        "way": len(r.way) == capacity,
        "queue": len(r.queue) == capacity,
    }


def _bets(r: Any, n: Extent) -> dict[str, Holds]:
    rows, kinds, numbered = len(r.pairs.wins) // 2, int(r.kinds[0]), r.closure.number
    held = r.certificates.expires[: max(0, int(r.certificates.given[0]))] > 0
    sides = [side[: len(held)][held] for side in (r.certificates.better, r.certificates.worse)]
    certified = all(np.all(_items(side, n)) and np.all(numbered[side] >= 0) for side in sides)
    return {
        "kinds": kinds == (1 if r.epoch[1] == ENDLESS else 4)
        and bool(len(r.fresh.number)) == (kinds == 4)
        and certified,
        "capital": len(r.capital) == 2 * kinds * rows and np.isfinite(r.capital),
        "lead": len(r.lead) == rows and np.isfinite(r.lead),
        "information": len(r.information) == rows and _amounts(r.information),
        "epoch": _epoch(r.epoch, n),
        "levels": r.levels >= 0.0,
    }


def _leader_counts(r: Any, n: Extent) -> dict[str, Holds]:
    """The table is half empty, so a search in it ends."""
    room, size = len(r.counts), int(r.size[0])
    whole = len(r.slots) == 2 * room and len(r.keys) == room and room & (room - 1) == 0
    return {
        "keys": ANY,
        "counts": _counts(r.counts, n),
        "slots": whole and _within(r.slots, 0, size) & (np.count_nonzero(r.slots) == size),
        "size": whole and 1 <= size <= room,
        "current": _within(r.current, 0, size - 1),
        "since": _counts(r.since, n),
    }


def _tournament(r: Any, n: Extent) -> dict[str, Holds]:
    return {
        "winner": _within(r.winner, NO_ITEM, n.n_items - 1),
        "played": _within(r.played, 0, int(r.generation[0])),
        "wins": _counts(r.wins, n),
        "losses": _counts(r.losses, n),
        "generation": _within(r.generation, 1, MOST),
        "good_until": r.good_until >= 0,
    }


def _partition(r: Any, n: Extent) -> dict[str, Holds]:
    """Parts tile the row. ``blockers`` holds ends of recommended groups, or NO_ITEM."""
    size = int(r.size[0])
    if size != np.count_nonzero(n.present):
        return {"size": False}
    order, place, groups = r.order[:size], np.arange(size), r.blockers[: n.n_positions]
    grouped = np.all(groups > np.arange(n.n_positions)) and _tiles(_starts(groups, n.n_positions), groups)
    return {
        "order": np.array_equal(np.sort(order), np.flatnonzero(n.present)),
        "start": _within(r.start[:size], 0, size) & (r.start[:size] <= place),
        "end": _within(r.end[:size], 1, size) & (r.end[:size] > place) & _tiles(r.start[:size], r.end[:size]),
        "size": ANY,
        "blockers": _within(r.blockers, NO_ITEM, size) & (bool(np.all(groups == NO_ITEM)) or grouped),
    }


def _extra(array: NDArray[Any], n: Extent) -> Holds:
    """UniRank's extra item stands in the row, and so does the part that it is for."""
    size = np.count_nonzero(n.present)
    return (array >= (NO_ITEM, 0, 0, 0, 0)) & (array[0] < size) & (array[1] < size + int(array[0] == NO_ITEM))


def _starts(ends: NDArray[Any], size: int) -> NDArray[Any]:
    """By place, the first one with the same end."""
    return np.array([ends.tolist().index(end) for end in ends.tolist()], np.int64) if size else np.zeros(0, np.int64)


def _tiles(start: NDArray[Any], end: NDArray[Any]) -> bool:
    """True when each group begins where the one before ends, and all its places say so."""
    first, size = 0, len(end)
    while first < size:
        last = int(end[first])
        if last <= first or np.any(start[first:last] != first) or np.any(end[first : min(last, size)] != last):
            return False
        first = last
    return True


def _batches(r: Any, n: Extent) -> dict[str, Holds]:
    size, ends = int(r.size[0]), len(r.end)
    seated = r.seats[: max(size, 0)]
    different = np.all(_items(r.seats, n)) and len(set(seated.tolist())) == size
    return {
        "seats": different and n.present[seated.astype(np.int64)],
        "size": ends <= size <= len(r.seats),
        "start": _within(r.start, 0, ends - 1),
        "end": _within(r.end, 1, ends) & _tiles(r.start, r.end),
        "stage": _within(r.stage, 0, 60),
        "needed": _counts(r.needed, n),
        "since": _counts(r.since, n),
        "observed": _counts(r.observed, n),
        "clicked": _counts(r.clicked, n) & (r.clicked <= r.observed),
        "scratch": ANY,
    }


def _bubble(r: Any, n: Extent) -> dict[str, Holds]:
    """Items of the leader are ranked, the other present ones candidates: none stands on a page twice."""
    standing = np.where(n.present, CANDIDATE, ABSENT)
    standing[np.minimum(r.row[:-1], n.n_items - 1).astype(np.int64)] = RANKED
    known = {"standing": r.standing == standing}
    if hasattr(r, "tournament"):
        played = r.tournament.winner[r.tournament.played == r.tournament.generation[0]]
        return known | {
            "row": _ranking(r.row, n) & np.isin(played, [NO_ITEM, *np.flatnonzero(standing == CANDIDATE)]).all()
        }
    eligible = r.eligible[: max(0, int(r.n_eligible[0]))]
    return known | {"eligible": np.isin(eligible, np.flatnonzero(standing == CANDIDATE))}


def _appeal(r: Any, n: Extent) -> dict[str, Holds]:
    """An item is among the tried ones exactly when it has exposure."""
    tried = r.tried[: max(0, int(r.n_tried[0]))]
    shown = np.flatnonzero(r.exposure)
    return {
        "clicks": _amounts(r.clicks),
        "exposure": _amounts(r.exposure),
        "place_clicks": _amounts(r.place_clicks),
        "pages": _counts(r.pages, n),
        "tried": np.array_equal(np.sort(tried), shown),
        "n_tried": _within(r.n_tried, 0, n.n_items),
    }


def _trust(r: Any, n: Extent) -> dict[str, Holds]:
    return {"clicked": _within(r.clicked, 0, n.n_round), "came": _within(r.came, 0, int(r.clicked[0]))}


def _displays(r: Any, n: Extent) -> dict[str, Holds]:
    return {
        "shown": _counts(r.shown, n),
        "clicked": _counts(r.clicked, n) & (r.clicked <= r.shown),
        "mass": _amounts(r.mass),
        "places": np.array_equal(np.sort(r.places), np.arange(n.n_positions)),
    }


def _posteriors(r: Any, n: Extent) -> dict[str, Holds]:
    return {"clicks": _counts(r.clicks, n), "failures": _counts(r.failures, n)}


RULES: dict[str, Callable[[Any, Extent], dict[str, Holds]]] = {
    "Appeal": _appeal,
    "BatchRankPlan": _batches,
    "Bets": _bets,
    "BubbleRankPlan": _bubble,
    "Certificates": _certificates,
    "Closure": _closure,
    "Displays": _displays,
    "Duels": _duels,
    "KlUcbBrPlan": _bubble,
    "LeaderCounts": _leader_counts,
    "LifetimeDuels": _lifetime_duels,
    "Pairs": _pairs,
    "Partition": _partition,
    "Posteriors": _posteriors,
    "Scratch": lambda r, n: {"rival": ANY},
    "Tournament": _tournament,
    "Trust": _trust,
}

FIELDS: dict[str, Callable[[NDArray[Any], Extent], Holds]] = {
    "n_items": lambda array, n: array == n.n_items,
    "learned": lambda array, n: _within(array, 0, n.n_round),
    "changes": _counts,
    "known": _counts,
    "horizon": lambda array, n: ANY,  # set again
    "present": lambda array, n: array == n.present,
    "base": _ranking,
    "leader": _ranking,
    "row": _ranking,
    "candidates": lambda array, n: _items(array, n) & n.present[np.minimum(array, n.n_items - 1).astype(np.int64)],
    "pool": lambda array, n: ANY,  # written before it is read
    "open": lambda array, n: _within(array, 0, 1),
    "unsettled": lambda array, n: _within(array, 0, 2),
    "moved_in": _counts,
    "n_eligible": lambda array, n: _within(array, 0, n.n_items),
    "examined": _counts,
    "clicked": _counts,
    "extra": _extra,
    "part_of": lambda array, n: _within(array, 0, n.n_items),
}
