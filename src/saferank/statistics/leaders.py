"""Leader counts: how often exactly this leader has been the leader.

KL-UCB-BR and UniRank measure time by the pages that were issued under the current leader, in total and not in a row.
The table keeps every leader that ever was and compares them in full, so that no collision of hashes can merge two
counts. KL-UCB-BR has few of them, each costs a certified change; UniRank may see hundreds in some thousand pages.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.verbs import Ints, Items


class LeaderCounts(NamedTuple):
    """Leaders in the order of their first appearance."""

    keys: Ints  # [capacity, width]
    counts: Ints  # [capacity] pages issued under each, as long as it led before the present leader
    slots: Ints  # [2 * capacity] open-addressed: index of a leader + 1, or 0
    size: Ints  # [1] leaders known
    current: Ints  # [1] index of the present leader
    since: Ints  # [1] pages that were issued when it became the leader


def new_leader_counts(width: int, capacity: int) -> LeaderCounts:
    """An empty table for leaders that are arrays of length ``width``; ``capacity`` is a power of two."""
    return LeaderCounts(
        keys=np.zeros((capacity, width), np.int64),
        counts=np.zeros(capacity, np.int64),
        slots=np.zeros(2 * capacity, np.int64),
        size=np.zeros(1, np.int64),
        current=np.zeros(1, np.int64),
        since=np.zeros(1, np.int64),
    )


@kernel
def _hash(leader: Ints | Items) -> np.uint64:
    mixed = np.uint64(0xCBF29CE484222325)
    for k in range(len(leader)):
        mixed = (mixed ^ np.uint64(leader[k])) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@kernel
def _same(known: Ints, leader: Ints | Items) -> bool:
    for k in range(len(leader)):  # noqa: SIM110 (numba compiles loops, not generators)
        if known[k] != leader[k]:
            return False
    return True


@kernel
def pages_under(leaders: LeaderCounts, issued: int) -> int:
    """How many of the pages until now were issued under the present leader."""
    return int(leaders.counts[leaders.current[0]] + issued - leaders.since[0])


@kernel
def enthrone(leaders: LeaderCounts, leader: Ints | Items, issued: int) -> None:
    """Make ``leader`` the current one after ``issued`` pages; it has its count again if it was the leader before."""
    if leaders.size[0] > 0:
        leaders.counts[leaders.current[0]] += issued - leaders.since[0]
    leaders.since[0] = issued
    mask = len(leaders.slots) - 1
    slot = np.int64(_hash(leader) >> np.uint64(20)) & mask
    while leaders.slots[slot] > 0 and not _same(leaders.keys[leaders.slots[slot] - 1], leader):
        slot = (slot + 1) & mask
    if leaders.slots[slot] == 0:
        leaders.size[0] += 1
        leaders.slots[slot] = leaders.size[0]
        for k in range(len(leader)):
            leaders.keys[leaders.size[0] - 1, k] = leader[k]
    leaders.current[0] = leaders.slots[slot] - 1


@kernel
def forget_leaders(leaders: LeaderCounts) -> None:
    """Start counting again, as if no leader had ever been there."""
    for slot in range(len(leaders.slots)):
        leaders.slots[slot] = 0
    for leader in range(leaders.size[0]):
        leaders.counts[leader] = 0
    leaders.size[0] = 0


@kernel
def leaders_full(leaders: LeaderCounts) -> bool:
    """True when a new leader would find no place."""
    return bool(leaders.size[0] >= len(leaders.counts))


def with_more_leaders(leaders: LeaderCounts) -> LeaderCounts:
    """The same counts in a table of twice the size."""
    bigger = new_leader_counts(leaders.keys.shape[1], 2 * len(leaders.counts))
    for leader, count in zip(leaders.keys[: leaders.size[0]], leaders.counts, strict=False):
        enthrone(bigger, leader, 0)
        bigger.counts[bigger.current[0]] = count
    bigger.current[0], bigger.since[0] = leaders.current[0], leaders.since[0]
    return bigger
