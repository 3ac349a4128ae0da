"""What follows from certificates, and the leaders that certified exchanges make of production's ranking.

Nothing here knows a policy. Items are numbers, sets of items are bits of an integer. A certificate (i, j) says that i
is better than j; certificates close transitively. An exchange of two items of a ranking of which the lower one is
certified to be better lowers the number V of wrong pairs by one at least, under every order that the certificates
leave possible. So a leader that takes m such exchanges has V(leader) <= V(base) - m.

Several orders of exchanges are possible and end in different leaders. ``leaders`` gives those of all orders that the
policies use; each is as good a proof as any other.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

Pair = tuple[int, int]


class Leader(NamedTuple):
    """A ranking, and by how many wrong pairs it is better than production's for certain."""

    row: tuple[int, ...]
    earned: int


class Certified:
    """The transitive closure of certificates."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self.pairs: tuple[Pair, ...] = tuple(pairs)
        self._below: dict[int, int] = {}
        for better, worse in self.pairs:
            self._add(better, worse)

    def _add(self, better: int, worse: int) -> None:
        below = self._below
        gained = below.get(worse, 0) | 1 << worse
        if below.get(better, 0) & gained == gained:
            return
        bit = 1 << better
        below[better] = below.get(better, 0) | gained
        for item, worse_ones in below.items():
            if worse_ones & bit:
                below[item] = worse_ones | below[better]

    def extended(self, pairs: Iterable[Pair]) -> "Certified":
        """With further certificates, apart from those that follow already or contradict what is certain before them."""
        more, new = Certified(self.pairs), []
        for better, worse in pairs:
            if not more.surely(better, worse) and not more.surely(worse, better):
                more._add(better, worse)
                new.append((better, worse))
        more.pairs += tuple(new)
        return more if new else self

    def below(self, item: int) -> int:
        """The items that are certified to be worse, as bits."""
        return self._below.get(item, 0)

    def surely(self, better: int, worse: int) -> bool:
        """True when the first is certified to be better, directly or by what follows."""
        return self._below.get(better, 0) >> worse & 1 == 1

    def winners(self) -> list[int]:
        """Items that are certified over some other, by number."""
        return sorted(self._below)

    def winners_in_order(self) -> list[int]:
        """The same in the order in which they first occur in a certificate."""
        return [item for item in dict.fromkeys(item for pair in self.pairs for item in pair) if item in self._below]


def leaders(certified: Certified, base: Sequence[int], present: int) -> Iterator[Leader]:
    """Leaders that certified exchanges make of ``base``; ``present`` are the items of the call, as bits.

    The first one is *the* leader of a context.
    """
    yield exchanged(certified, base, present)
    if not certified.pairs:
        return
    yield moved_up(certified, base, present)
    in_order = [item for item in certified.winners_in_order() if present >> item & 1]
    for distant in (True, False):
        yield _sorted(certified, base, in_order, distant)
    yield _passed_over(certified, base, [item for item in in_order if item not in base])


def exchanged(certified: Certified, base: Sequence[int], present: int) -> Leader:
    """Neighbours first, then the bottom item and those outside, then items further apart; from the top down."""
    if not certified.pairs:
        return Leader(tuple(base), 0)
    return _sorted(certified, base, [item for item in certified.winners() if present >> item & 1], distant=True)


def _sorted(certified: Certified, base: Sequence[int], winners: Sequence[int], distant: bool) -> Leader:
    size, ranked = len(base), set(base)
    pool = [*base, *(item for item in winners if item not in ranked)]
    swaps, most = 0, size * (size - 1) // 2 + size * (len(pool) - size)
    while swaps <= most:
        made = _swap_neighbours(certified.surely, pool, size)
        if made == 0 and distant:
            made = _swap_distant(certified.surely, pool, size)
        if made == 0:
            return Leader(tuple(pool[:size]), swaps)
        swaps += made
    return Leader(tuple(base), 0)  # only when certificates contradict each other: then nothing is certain


def _swap_neighbours(surely: Callable[[int, int], bool], pool: list[int], size: int) -> int:
    swaps = 0
    places = [*((place, place + 1) for place in range(size - 1)), *((size - 1, low) for low in range(size, len(pool)))]
    for upper, lower in places:
        if surely(pool[lower], pool[upper]):
            pool[upper], pool[lower] = pool[lower], pool[upper]
            swaps += 1
    return swaps


def _swap_distant(surely: Callable[[int, int], bool], pool: list[int], size: int) -> int:
    for upper in range(size):
        for lower in range(upper + 1, len(pool)):
            if surely(pool[lower], pool[upper]):
                pool[upper], pool[lower] = pool[lower], pool[upper]
                return 1
    return 0


def _passed_over(certified: Certified, base: Sequence[int], challengers: Sequence[int]) -> Leader:
    """Passes over the leader and one challenger after the other, until nothing moves."""
    row, swaps, moved = list(base), 0, True
    most = len(row) * (len(row) + len(challengers)) + 1
    while moved and swaps <= most:
        moved = False
        for challenger in (None, *challengers):
            made = _swap_neighbours(certified.surely, row, len(row))
            if challenger is not None and challenger not in row and certified.surely(challenger, row[-1]):
                row[-1], made = challenger, made + 1
            swaps, moved = swaps + made, moved or made > 0
    return Leader(tuple(row), swaps) if swaps <= most else Leader(tuple(base), 0)


def moved_up(certified: Certified, base: Sequence[int], present: int) -> Leader:
    """Neighbours first; then the lowest place that has a better item below it or outside gets the best such item.

    Such an exchange of a with b also puts right the pairs with every z between the two, and outside if b was outside,
    of which b over z over a is certified.
    """
    row, earned = list(base), 0
    most = len(row) * (len(row) + present.bit_count())
    while earned <= most:
        gain = _swap_neighbours(certified.surely, row, len(row)) or _exchange_lowest(certified, row, present)
        if gain == 0:
            return Leader(tuple(row), earned)
        earned += gain
    return Leader(tuple(base), 0)


def _exchange_lowest(certified: Certified, row: list[int], present: int) -> int:
    for place in range(len(row) - 1, -1, -1):
        worse, above = row[place], set(row[: place + 1])
        better = [i for i in certified.winners_in_order() if present >> i & 1 and i not in above]
        better = [item for item in better if certified.surely(item, worse)]
        if better:
            best = max(better, key=lambda item: (certified.below(item) & present).bit_count())
            return _exchange(certified, row, place, best, present)
    return 0


def _exchange(certified: Certified, row: list[int], place: int, best: int, present: int) -> int:
    worse, gain = row[place], 1
    if best in row:
        other = row.index(best)
        gain += 2 * sum(_between(certified, best, row[z], worse) for z in range(place + 1, other))
        row[other] = worse
    else:
        gain += 2 * sum(_between(certified, best, z, worse) for z in row[place + 1 :])
        gain += sum(
            _between(certified, best, z, worse) for z in certified.winners() if present >> z & 1 and z not in row
        )
    row[place] = best
    return gain


def _between(certified: Certified, better: int, item: int, worse: int) -> bool:
    return certified.surely(better, item) and certified.surely(item, worse)
