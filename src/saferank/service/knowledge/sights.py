"""When items were seen last: on which of the pages that were learnt. Items of long ago make room for new ones."""

import copy
from collections.abc import Collection, Sequence

import numpy as np

from saferank.live.replay import LEARNT, Pages
from saferank.verbs import Ints

_NEVER = -1


class Sights:
    """The order in which items were seen last, and how many pages were learnt since items made room.

    Only the order counts, so it is what is saved. It does not depend on how the pages came in batches.
    """

    def __init__(self, n_items: int, packed: Sequence[int] = ()) -> None:
        self._seen: Ints = np.zeros(n_items, np.int64)  # by item: on which page, 0 for none
        self._pages = n_items
        self._since = _NEVER
        if packed:
            self._since, unseen, *order = packed
            self._seen[order[unseen:]] = np.arange(1, n_items - unseen + 1)

    @property
    def pages_since(self) -> int | None:
        """Pages that were learnt since items made room last; None: they never did."""
        return None if self._since == _NEVER else self._since

    def note(self, pages: Pages, begin: int, end: int) -> None:
        """Note the items of the pages that were learnt."""
        learnt = begin + np.flatnonzero(pages.operation[begin:end] == LEARNT)
        if not len(learnt):
            return
        used = np.arange(pages.ranking.shape[1]) < pages.places[learnt][:, None]
        numbers = self._pages + 1 + np.arange(len(learnt))
        np.maximum.at(self._seen, pages.ranking[learnt][used], np.broadcast_to(numbers[:, None], used.shape)[used])
        self._pages += len(learnt)
        if self._since != _NEVER:
            self._since += len(learnt)

    def oldest_first(self) -> list[int]:
        """The numbers of the items, those first that were not seen for the longest time."""
        order: list[int] = np.argsort(self._seen, kind="stable").tolist()
        return order

    def with_more(self, n_items: int) -> "Sights":
        """More items have come; nobody has seen them."""
        return self._changed(np.append(self._seen, np.zeros(n_items, np.int64)))

    def without(self, gone: Collection[int]) -> "Sights":
        """These items have made room for others; the rest are numbered again."""
        fewer = self._changed(np.delete(self._seen, list(gone)))
        fewer._since = 0
        return fewer

    def _changed(self, seen: Ints) -> "Sights":
        other = copy.copy(self)
        other._seen = seen
        return other

    def packed(self) -> list[int]:
        """Pages since items made room, how many items were never seen, and the order."""
        return [self._since, int((self._seen == 0).sum()), *self.oldest_first()]
