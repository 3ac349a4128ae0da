"""A page: what the live ranker asks to be shown, and what it compares on it."""

from dataclasses import dataclass, field

from saferank.safety import Budget
from saferank.verbs import Impression

Item = str | int


@dataclass(frozen=True)
class Page:
    """What to show, and what is being compared on it."""

    items: tuple[Item, ...]
    hidden: Item | None  # the item at the hidden place K+1 after the coins: compared, not shown
    round: int  # pages issued by the ranker so far, this one included
    challenger: Item | None  # the unranked item that contends for the last position, shown or hidden
    leader: tuple[Item, ...]  # the leader when the page was issued
    groups: tuple[tuple[Item, ...], ...]  # items that are compared with one another, best shown first
    issued_by: str = field(repr=False)
    _impression: Impression = field(repr=False, compare=False)
    budget: Budget | None = field(default=None, repr=False)  # what it may spend, and spends
