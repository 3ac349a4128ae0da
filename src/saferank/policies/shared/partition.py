"""Ordered partitions of the items: TopRank's blocks and UniRank's parts.

The items stand in a row, part after part and in item order within a part; ``start[place]`` and ``end[place]`` are the
extent of the part of that place, as on a page.
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.randomness import Words, below_from, load, store
from saferank.verbs import Flags, Impression, Ints, Items

LARGEST_CATALOGUE = 4096
"""A partition of all items compares all pairs: beyond this the matrices would not fit into memory."""


class Partition(NamedTuple):
    """Parts, best first."""

    order: Items  # by place
    start: Ints  # by place: the first place of its part
    end: Ints  # by place: one past the last place of its part
    size: Ints  # [1] items in all parts
    blockers: Ints  # by item, scratch: how many of the remaining items keep it out of the next part; -1 afterwards


def new_partition(n_items: int) -> Partition:
    """Room for ``n_items`` items, none placed."""
    return Partition(
        order=np.zeros(n_items, np.uint32),
        start=np.zeros(n_items, np.int64),
        end=np.zeros(n_items, np.int64),
        size=np.zeros(1, np.int64),
        blockers=np.zeros(n_items, np.int64),
    )


_PLACED = -1


@kernel
def _count_blockers(partition: Partition, below: Flags, present: Flags) -> int:
    """Count for every present item the present items that it surely stands below; returns how many are present."""
    blockers, size = partition.blockers, 0
    for item in range(len(present)):
        blockers[item] = _PLACED
        if present[item]:
            size += 1
            blockers[item] = 0
            for other in range(len(present)):
                blockers[item] += int(below[item, other] and present[other])
    return size


@kernel
def _place_part(partition: Partition, start: int, most_blockers: int) -> int:
    """Put the remaining items with at most ``most_blockers`` blockers into the row from ``start``; returns the end."""
    place = start
    for item in range(len(partition.blockers)):
        if partition.blockers[item] != _PLACED and partition.blockers[item] <= most_blockers:
            partition.order[place] = item
            place += 1
    for seat in range(start, place):
        partition.blockers[partition.order[seat]] = _PLACED
        partition.start[seat], partition.end[seat] = start, place
    return place


@kernel
def rebuild(partition: Partition, below: Flags, present: Flags) -> None:
    """Cut the present items into parts: repeatedly all that stand below no remaining item; if there are none, the rest.

    ``below[i, j]`` says that i surely stands below j.
    """
    size = _count_blockers(partition, below, present)
    partition.size[0] = size
    start = 0
    while start < size:
        end = _place_part(partition, start, 0)
        if end == start:
            end = _place_part(partition, start, size)
        for seat in range(start, end):
            for item in range(len(present)):
                if partition.blockers[item] != _PLACED:
                    partition.blockers[item] -= int(below[item, partition.order[seat]])
        start = end


def with_larger_matrix(below: Flags, n_items: int) -> Flags:
    """The same of ``n_items`` items."""
    larger = np.zeros((n_items, n_items), np.bool_)
    larger[: len(below), : len(below)] = below
    return larger


@kernel
def shuffle_page(impression: Impression, rng: Words, places: int) -> None:
    """Shuffle inside every group, as far as its places are shown, as ``shuffle_front`` does.

    The state of the generator is in registers for the whole page.
    """
    ranking, n_positions = impression.ranking, len(impression.shown)
    impression.places[0] = places
    words, start = load(rng), 0
    while start < n_positions:
        end = impression.end[start]
        for place in range(start, min(end - 1, n_positions)):
            step, words = below_from(words, end - place)
            held = ranking[place]
            ranking[place] = ranking[place + step]
            ranking[place + step] = held
        start = end
    store(rng, words)


def row_of(partition: Partition) -> Ints:
    """All placed items, best part first, in item order within a part."""
    return partition.order[: partition.size[0]].astype(np.int64)


def apart(partition: Partition, i: int, j: int) -> bool:
    """True when the two items stand in different parts."""
    places = {int(item): place for place, item in enumerate(row_of(partition))}
    return bool(partition.end[places[i]] != partition.end[places[j]])


def sizes_in_words(partition: Partition) -> str:
    """The sizes of the parts, for people: "1, 3 and 6"."""
    ends = np.unique(partition.end[: partition.size[0]])
    sizes = [str(size) for size in np.diff(ends, prepend=0)]
    return " and ".join([*([", ".join(sizes[:-1])] if sizes[:-1] else []), sizes[-1]])
