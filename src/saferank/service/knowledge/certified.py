"""What follows from certificates, as sets of items, and the leaders that certified exchanges make of a base ranking.

Nothing here knows a policy: a leader is derived from the certificates and the call's base ranking alone, by the
derivations that policies follow as well (``policies/shared/derivation.py``). Each of them proves how many wrong pairs a
leader has fewer than production's ranking, and any proof is as good as another. Items are numbers, sets of items are
bits of an integer.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saferank.policies.shared.derivation import derive_reference, new_reference, sort_pool
from saferank.statistics.certificates import (
    Closure,
    certify_further,
    close,
    closure_for,
    lasting_certificates,
    with_more_unnumbered,
)
from saferank.verbs import Ints

Pair = tuple[int, int]


class Leader(NamedTuple):
    """A ranking, and by how many wrong pairs it is better than production's for certain."""

    row: tuple[int, ...]
    earned: int


class Certified:
    """Certificates and their transitive closure.

    A context may have many more items than certificates, so the closure has numbers of its own: an item gets one when
    it first occurs in a certificate.
    """

    def __init__(self, pairs: Iterable[Pair] = (), further: Iterable[Pair] = ()) -> None:
        """``further`` certificates count unless they follow already or contradict what is certain before them."""
        own, more = list(pairs), list(further)
        items = dict.fromkeys(item for pair in [*own, *more] for item in pair)
        self.number = {item: at for at, item in enumerate(items)}
        self.closure = closure_for(len(self.number))
        taken = np.zeros(len(more), np.bool_)
        if self.number:
            close(lasting_certificates(self._numbered(own)), self.closure, 1)
            certify_further(self.closure, self._numbered(more), taken)
        self.pairs: tuple[Pair, ...] = (*own, *itertools.compress(more, taken.tolist()))
        self._below = self._sets()
        self.is_circular = any(worse >> item & 1 for item, worse in self._below.items())

    def _numbered(self, pairs: Sequence[Pair]) -> Ints:
        return np.array([[self.number[better], self.number[worse]] for better, worse in pairs], np.int64).reshape(-1, 2)

    def _sets(self) -> dict[int, int]:
        """By item that is certified over some other: the items that are worse."""
        size, known, items = len(self.closure.item), int(self.closure.size[0]), np.array(list(self.number), np.int64)
        bits = np.unpackbits(self.closure.worse.view(np.uint8), bitorder="little").reshape(size, size)
        named = items[self.closure.item[:known]]
        by_item = np.zeros((known, 1 + int(items.max(initial=-1))), np.uint8)
        by_item[:, named] = bits[:known, :known]
        rows = np.packbits(by_item, axis=1, bitorder="little")
        sets = {item: int.from_bytes(row.tobytes(), "little") for item, row in zip(named.tolist(), rows, strict=True)}
        return {item: worse for item, worse in sets.items() if worse}

    def extended(self, pairs: Iterable[Pair]) -> "Certified":
        """With further certificates, apart from those that follow already or contradict what is certain before them."""
        more = Certified(self.pairs, pairs)
        return self if len(more.pairs) == len(self.pairs) else more

    def below(self, item: int) -> int:
        """The items that are certified to be worse, as bits."""
        return self._below.get(item, 0)

    def surely(self, better: int, worse: int) -> bool:
        """True when the first is certified to be better, directly or by what follows."""
        return self._below.get(better, 0) >> worse & 1 == 1

    def winners(self) -> list[int]:
        """Items that are certified over some other, by number."""
        return sorted(self._below)


class _Call(NamedTuple):
    """A call in the numbers of the closure; items that no certificate names come after the others."""

    items: list[int]
    number: dict[int, int]
    closure: Closure


def _numbered_for(certified: Certified, base: Sequence[int]) -> _Call:
    items = list(dict.fromkeys([*certified.number, *base]))
    number = {item: at for at, item in enumerate(items)}
    return _Call(items, number, with_more_unnumbered(certified.closure, len(items)))


def leaders(certified: Certified, base: Sequence[int], present: int) -> Iterator[Leader]:
    """Leaders that certified exchanges make of ``base``; ``present`` are the items of the call, as bits.

    The first one is *the* leader of a context.
    """
    yield exchanged(certified, base, present)
    if certified.pairs:
        yield moved_up(certified, base, present)


def exchanged(certified: Certified, base: Sequence[int], present: int) -> Leader:
    """Neighbours first, then the bottom item and those outside, then items further apart; from the top down."""
    if not certified.pairs or certified.is_circular:  # when certificates contradict each other nothing is certain
        return Leader(tuple(base), 0)
    call, ranked = _numbered_for(certified, base), set(base)
    outside = [item for item in certified.winners() if present >> item & 1 and item not in ranked]
    pool = np.array([call.number[item] for item in [*base, *outside]], np.uint32)
    swaps = sort_pool(call.closure, pool, len(base), len(pool))
    return Leader(tuple([call.items[at] for at in pool[: len(base)].tolist()]), swaps)


def moved_up(certified: Certified, base: Sequence[int], present: int) -> Leader:
    """Neighbours first; then the lowest place that has a better item below it or outside gets the best such item."""
    if certified.is_circular:
        return Leader(tuple(base), 0)
    call = _numbered_for(certified, base)
    ranked = np.array([call.number[item] for item in base], np.uint32)
    reference = new_reference(ranked, len(call.items))
    derive_reference(reference, call.closure, np.array([present >> item & 1 for item in call.items], np.bool_))
    return Leader(tuple([call.items[at] for at in reference.row.tolist()]), int(reference.income[0]))
