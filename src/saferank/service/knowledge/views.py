"""The views that calls look through, kept while they are up to date."""

from collections import OrderedDict
from itertools import chain
from typing import NamedTuple

from saferank.saved_state import bytes_in_use
from saferank.service.knowledge.catalogues import Catalogue
from saferank.service.knowledge.knowledge import Knowledge
from saferank.service.knowledge.view import View

_KEPT = 512
_FRESH_MS = 1000
_OVERHEAD = 100_000
"""Bytes of a view beside the tables of the evidence."""

Key = tuple[int, int, bytes]
"""Number of the context, page size, digest of the catalogue."""


class Kept(NamedTuple):
    """A view that was made."""

    view: View
    made_at: int
    memory: int  # bytes, about

    def is_useful(self, knowledge: Knowledge, now: int) -> bool:
        """True when a call may look through it."""
        recent = self.view.folds == knowledge.folds or now - self.made_at < _FRESH_MS
        return recent and self.view.is_certain_of(knowledge)


class Views:
    """The newest views by context, page size and catalogue.

    A view whose certificates still hold may be a second old: what was learnt meanwhile changes what is tried next, and
    never what is safe. A view shares the evidence with the knowledge, unless its call brings items that the knowledge
    does not have: then it has tables of its own. So views are limited by memory as well, to ``most`` bytes.
    """

    def __init__(self, most: int) -> None:
        self._most, self.memory = most, 0
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._keys: dict[int, set[Key]] = {}  # by context

    def __len__(self) -> int:
        return len(self._kept)

    def view(self, context: int, knowledge: Knowledge, digest: bytes, lists: Catalogue, now: int) -> View:
        """The view of a call; ContradictionError when certificates contradict each other."""
        key = (context, knowledge.k, digest)
        kept = self._kept.get(key)
        if kept is not None and kept.is_useful(knowledge, now):
            return kept.view
        made = Kept(View(knowledge, *lists), now, _memory(knowledge, lists))
        self._drop_useless(context, knowledge, now)
        self._keep(key, made)
        return made.view

    def forget(self, context: int) -> None:
        """Drop the views of a context that is put away."""
        for key in list(self._keys.get(context, ())):
            self._drop(key)

    def _keep(self, key: Key, made: Kept) -> None:
        self._drop(key)
        self._kept[key] = made
        self._keys.setdefault(key[0], set()).add(key)
        self.memory += made.memory
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self.memory > self._most):
            self._drop(next(iter(self._kept)))

    def _drop_useless(self, context: int, knowledge: Knowledge, now: int) -> None:
        """Drop views that would be made again anyway: they may be all that keeps old tables in memory."""
        for key in list(self._keys.get(context, ())):
            if key[1] == knowledge.k and not self._kept[key].is_useful(knowledge, now):
                self._drop(key)

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.memory -= kept.memory
            self._keys[key[0]].discard(key)
            if not self._keys[key[0]]:
                del self._keys[key[0]]


def _memory(knowledge: Knowledge, lists: Catalogue) -> int:
    """About how many bytes a view takes."""
    shared = all(item in knowledge.learner.index for item in chain(*lists))
    return _OVERHEAD + (0 if shared else bytes_in_use(knowledge.learner.state))
