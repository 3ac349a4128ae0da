"""The check of every page before it leaves, written without a look at the policies.

A page is legal when it is the leader with disjoint neighbours exchanged, pairs (2,3), (4,5), ... in odd rounds and
(1,2), (3,4), ... in even ones, and nothing else; the challenger counts as the item below the leader, so the last
position may hold it instead of the bottom item. All items are different and are in the call.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple


class Proposal(NamedTuple):
    """A page as the policy wants it."""

    row: Sequence[str]  # by place: the shown items, then the one compared without being shown
    group_ends: Sequence[int]
    challenger: str | None
    round: int


class Verdict(NamedTuple):
    """Why a page must not be served, or what it does to the leader."""

    fault: str | None
    exchanged: int = 0  # a bit for each pair in the other order, by its number among the groups


def check_page(leader: Sequence[str], available: Container[str], page: Proposal) -> Verdict:
    """Whether a page may be served."""
    rest = [] if page.challenger is None else [page.challenger]
    expected = [*leader, *rest]
    fault = _fault_of_items(leader, expected, available, page)
    if fault is not None:
        return Verdict(fault)
    exchanged, place = 0, 0
    for group, end in enumerate(_pair_ends(len(expected), page.round)):
        there, wanted = page.row[place:end], expected[place:end]
        if list(there) != wanted:
            if end - place != 2 or [there[1], there[0]] != wanted:
                return Verdict(f"places {place + 1} to {end} show {list(there)} where the leader has {wanted}")
            exchanged |= 1 << group
        place = end
    return Verdict(None, exchanged)


def _fault_of_items(
    leader: Sequence[str], expected: Sequence[str], available: Container[str], page: Proposal
) -> str | None:
    if len(page.row) != len(expected):
        return f"{len(page.row)} places for {len(expected)} items"
    if len(set(page.row)) != len(page.row):
        return "an item is on the page twice"
    stranger = next((item for item in page.row[: len(leader)] if item not in available), None)
    if stranger is not None:
        return f"item {stranger!r} is not in the call"
    if list(page.group_ends) != _pair_ends(len(expected), page.round):
        return f"the groups end at {list(page.group_ends)} in round {page.round}"
    return None


def _pair_ends(places: int, round_: int) -> list[int]:
    """Where the pairs of a round end; a place without a partner stands alone."""
    ends = [1] if round_ % 2 else []
    ends += range((ends or [0])[-1] + 2, places + 1, 2)
    return ends if ends and ends[-1] == places else [*ends, places]
