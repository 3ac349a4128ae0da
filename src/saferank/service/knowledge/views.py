"""The views that calls look through, kept while they are up to date."""

from collections import OrderedDict

from saferank.service.knowledge.catalogues import Catalogue
from saferank.service.knowledge.knowledge import Knowledge
from saferank.service.knowledge.view import View

_KEPT = 512
_FRESH_MS = 1000


class Views:
    """The newest views by context, page size and catalogue.

    A view whose certificates still hold may be a second old: what was learnt meanwhile changes what is tried next, and
    never what is safe.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int, bytes], tuple[View, int]] = OrderedDict()

    def view(self, context: int, knowledge: Knowledge, digest: bytes, lists: Catalogue, now: int) -> View:
        """The view of a call; ContradictionError when certificates contradict each other."""
        key = (context, knowledge.k, digest)
        kept = self._kept.get(key)
        if kept is not None and kept[0].is_certain_of(knowledge):
            view, made_at = kept
            if view.folds == knowledge.folds or now - made_at < _FRESH_MS:
                return view
        view = View(knowledge, *lists)
        self._kept[key] = (view, now)
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return view
