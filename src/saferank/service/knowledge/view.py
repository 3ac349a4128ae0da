"""Knowledge as one call sees it, and the views that are kept."""

import copy
import functools
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from saferank.live.explanation import Explanation
from saferank.live.replay import CHOSEN, carrying_out, new_desk, new_pages
from saferank.memory import Scratch, with_arrays
from saferank.saved_state import bytes_in_use
from saferank.service.knowledge.catalogues import Catalogue
from saferank.service.knowledge.certified import Certified, exchanged
from saferank.service.knowledge.knowledge import ROUNDS, Knowledge, copied_learner
from saferank.service.knowledge.page_check import CheckedCall, checked
from saferank.service.knowledge.sharing import all_certified, teach
from saferank.store.page_record import Law
from saferank.verbs import NOBODY, Impression

# --- knowledge as one call sees it: its items, its base ranking. A page is a pure function of a view and of coins ---
# A view has a copy of the policy's state whose leader is derived from the call's base ranking. What is large and never
# changed by choosing, the evidence (``duels``), is shared with the knowledge. Choosing a page changes the rest of the
# state, and the next page must not see that: every page is chosen on the same state, in a ``Scratch``. So the same
# coins give the same page as long as nothing was learnt in between, on whichever server.


_ONE_PAGE = new_pages(1, 0)
_ONE_PAGE.operation[0] = CHOSEN
_empty_desk = functools.lru_cache(maxsize=64)(new_desk)
_SHARED_FROM = 4096
"""Arrays of the evidence with more entries than this are shared, not copied."""


class Proposal(NamedTuple):
    """A page as the policy wants it, and whether it may be served."""

    row: tuple[str, ...]  # by place: the shown items, then those compared without being shown
    law: Law
    challenger: int | None  # its place
    round: int
    fault: str | None
    used: int  # see page_check.Checked


class View:
    """What a call sees; ContradictionError when certificates contradict each other."""

    def __init__(self, knowledge: Knowledge, base: Sequence[str], candidates: Sequence[str] | None = None) -> None:
        self.folds, self.made_from = knowledge.folds, sources(knowledge)
        knowledge = copy.copy(knowledge)
        knowledge.learner = copied_learner(knowledge.learner)  # it is rebased without a trace in the original
        knowledge.learner.state = _copied(knowledge.learner.state)
        others = [str(item) for item in knowledge.learner.present_items()] if candidates is None else candidates
        knowledge.know(list(dict.fromkeys([*base, *others])))
        self._learner, certified = knowledge.learner, all_certified(knowledge)
        if certified is not knowledge.certified:
            teach(knowledge, certified)
        self._learner.rebase(base, others)
        self._start, self._pages = knowledge.epoch * ROUNDS, knowledge.pages
        numbers = tuple(self._learner.index[item] for item in base[: knowledge.k])
        present = sum(1 << int(number) for number in np.flatnonzero(self._learner.present))
        self._call = CheckedCall(numbers, present, certified)
        self.leader = tuple(str(self._learner.items[number]) for number in exchanged(certified, numbers, present).row)
        self.form = knowledge.form
        self._names = cast(list[str], self._learner.items)  # items of the service are text
        state, places = self._learner.state, self._learner.kind.places(self._learner.setup)
        self._scratch = Scratch((state._replace(duels=()), _empty_desk(knowledge.k, places)))
        own, desk = self._scratch.parts
        page = desk.impression
        self._desk = desk._replace(impression=page._replace(shown=page.ranking[: knowledge.k]))
        self._state = own._replace(duels=state.duels)
        self._choose = carrying_out(self._learner.policy, self._state, _ONE_PAGE, self._desk)

    def is_certain_of(self, knowledge: Knowledge) -> bool:
        """True when it was made from the certificates that hold now."""
        return self.made_from == sources(knowledge)  # the very same: certificates that change are others

    def page(self, coins: bytes) -> Proposal:
        """The page of these coins."""
        learner, impression = self._learner, self._chosen(coins)
        places, challenger = int(impression.places[0]), int(impression.challenger[0])
        numbers: list[int] = impression.ranking[:places].tolist()
        return Proposal(
            row=tuple([self._names[number] for number in numbers]),
            law=_law(impression, places),
            challenger=None if challenger == NOBODY else numbers.index(challenger),
            round=int(impression.round[0]),
            **checked(self._call, numbers[: learner.n_positions])._asdict(),
        )

    def _chosen(self, coins: bytes) -> Impression:
        """The page as the policy gives it; it holds until the next one is chosen."""
        self._scratch.restore()
        self._state.round[0] = self._round_before(coins)
        self._desk.words[:] = np.frombuffer(coins, np.uint64)
        self._choose()
        return self._desk.impression

    def explain(self) -> Explanation:
        """What the next page would try."""
        learner = copy.copy(self._learner)
        learner.state = _copied(learner.state)
        learner.state.round[0] = self._start + self._pages
        return learner.explain()

    def _round_before(self, coins: bytes) -> int:
        """The next page is number n + 1, or n + 2 when the coins want the other parity.

        The parity of bubble policies is drawn: base rankings that alternate cannot alias with it.
        """
        wanted = hashlib.blake2b(coins, digest_size=1, person=b"parity").digest()[0] & 1
        return self._start + self._pages + ((self._pages + 1) & 1 ^ wanted)


def sources(knowledge: Knowledge) -> tuple[Certified, ...]:
    """The certificates of a page size, and those of the others."""
    return (knowledge.certified, *(other.certified for other in knowledge.others))


def _law(impression: Impression, places: int) -> Law:
    start, end = impression.start[:places].astype(np.uint8), impression.end[:places].astype(np.uint8)
    draw = (impression.weight[:places], impression.exchanges[:places]) if impression.frozen[0] else ()
    return Law(start.tobytes(), end.tobytes(), b"".join([column.tobytes() for column in draw]))


def _copied(state: Any) -> Any:
    """The state in arrays of its own, apart from large evidence."""
    own = with_arrays(state._replace(duels=()), np.ndarray.copy)
    return own._replace(
        duels=with_arrays(state.duels, lambda array: array if array.size > _SHARED_FROM else array.copy())
    )


# --- the views that calls look through, kept while they are up to date ---


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
