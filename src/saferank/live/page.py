"""A page: what the live ranker asks to be shown, and what it compares on it."""

from dataclasses import dataclass, field

from saferank.verbs import Impression

Item = str | int


@dataclass(frozen=True)
class Risk:
    """How many wrong pairs a page may have beyond production's ranking."""

    allowance: int  # floor(L - K/2)
    worst: int | None = None  # of the page, in the worst order that the certificates leave possible; None: no page

    def __str__(self) -> str:
        if self.worst is None:
            return f"a page may have at most {_pairs(self.allowance)} more than production's ranking"
        if self.worst < 0:
            found = f"this page has at least {_pairs(-self.worst)} fewer than production's ranking"
        else:
            found = f"this page has at most {_pairs(self.worst)} more than production's ranking"
        return f"{found}, whatever the order of undecided pairs; {self.allowance} more are allowed"


def _pairs(number: int) -> str:
    return f"{number} wrong {'pair' if number == 1 else 'pairs'}"


@dataclass(frozen=True)
class Page:
    """What to show, and what is being compared on it."""

    items: tuple[Item, ...]  # what to show, from the top
    hidden: Item | None  # the item at the hidden place K+1 after the coins: compared, not shown
    round: int  # pages issued by the ranker so far, this one included
    challenger: Item | None  # the unranked item that contends for the last position, shown or hidden
    leader: tuple[Item, ...]  # the leader when the page was issued
    groups: tuple[tuple[Item, ...], ...]  # items that are compared with one another, best shown first
    issued_by: str = field(repr=False)
    _impression: Impression = field(repr=False, compare=False)
    risk: Risk | None = field(default=None, repr=False)  # of a policy that works out the worst case
    candidates: tuple[Item, ...] | None = field(default=None, repr=False)  # in its call's order; None: as before
    pinned: tuple[Item, ...] = field(default=(), repr=False)  # items that stand where production has them

    @property
    def ranked(self) -> tuple[Item, ...]:
        """The items that are not pinned, from the top."""
        return tuple(item for item in self.items if item not in self.pinned)
