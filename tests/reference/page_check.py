"""How many wrong pairs a page may add to a leader, pair by pair and slowly: what the check of pages must come to.

Items are numbers. ``surely(i, j)`` says that i is certified to be better than j, directly or by what follows.
"""

from collections.abc import Callable, Sequence


def added_pairs(
    surely: Callable[[int, int], bool], everybody: Sequence[int], leader: Sequence[int], page: Sequence[int]
) -> int:
    """An upper bound of V(page) - V(leader) over all pairs of the items of a call."""
    size = len(page)
    on_page = {item: place for place, item in enumerate(page)}
    on_leader = {item: place for place, item in enumerate(leader)}
    named = [*page, *(item for item in leader if item not in on_page)]
    added = 0
    for upper, i in enumerate(named):
        for j in named[upper + 1 :]:
            before = on_leader.get(i, size) - on_leader.get(j, size)  # below 0: the leader has i above j
            if upper < size and before >= 0:
                added += -1 if before > 0 and surely(i, j) else int(not surely(i, j))
            elif upper >= size:  # hidden now, both of the leader
                added -= int(surely(j, i) if before < 0 else surely(i, j))
    outside = [item for item in everybody if item not in on_page and item not in on_leader]
    strangers = [item for item in page if item not in on_leader]
    return added + sum(not surely(item, other) for item in strangers for other in outside)
