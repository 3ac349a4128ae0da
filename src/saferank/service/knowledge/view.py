"""Knowledge as one call sees it, the memory in which pages are chosen, and the views that are kept."""

import copy
import functools
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from saferank.live.explanation import Explanation
from saferank.live.learner import Learner
from saferank.policies import issuing
from saferank.randomness import Words
from saferank.saved_state import bytes_in_use
from saferank.service.knowledge.catalogues import Catalogue
from saferank.service.knowledge.certified import Certified, exchanged
from saferank.service.knowledge.knowledge import ROUNDS, Knowledge, Terms, copied_learner
from saferank.service.knowledge.lessons import Lesson, Lessons
from saferank.service.knowledge.page_check import CheckedCall, fault_of, warm_up_check
from saferank.service.knowledge.sharing import all_certified, teach
from saferank.service.knowledge.visitors import chance_of_order
from saferank.store.page_record import Law, PageRecord
from saferank.verbs import NOBODY, Impression, new_impression

# --- where pages are chosen: the policy's state, an impression and the coins in one block of memory ---
# Choosing a page changes the state it is chosen on, and the next page must not see that. One copy of the block puts
# everything back; a copy of every array for every page took a fifth of the time of a rank call. All views whose states
# have the same arrays share a block: pages are chosen one at a time.


EVIDENCE = "duels"
"""The part of a state that choosing never changes. It is left where it is."""

_WORDS = 4
_ALIGNED = 16


class BlockShape(NamedTuple):
    """What two states that share a block have in common."""

    arrays: tuple[tuple[tuple[int, ...], str], ...]  # shape and kind of every array of the state, without evidence
    n_positions: int
    n_places: int


class Scratch:
    """A state on which pages are chosen, one after the other, each as if it were the first."""

    def __init__(self, state: Any, n_positions: int, n_places: int) -> None:
        arrays = list(_own_arrays(state))
        shape = BlockShape(tuple([(array.shape, array.dtype.str) for array in arrays]), n_positions, n_places)
        self._block = _block_of(shape)
        self.impression, self.words = self._block.impression, self._block.words
        self.state = _moved(state, iter(self._block.arrays))
        for mine, array in zip(self._block.arrays, arrays, strict=True):
            mine[...] = array
        self._begin: NDArray[np.uint8] = self._block.state_bytes.copy()

    def restore(self) -> None:
        """Everything is as it was at first."""
        self._block.state_bytes[:] = self._begin
        self._block.page_bytes[:] = self._block.no_page


class _Block:
    """The memory."""

    def __init__(self, shape: BlockShape) -> None:
        kinds = [(size, np.dtype(kind)) for size, kind in shape.arrays]
        self.state_bytes = np.zeros(sum(_room(size, kind) for size, kind in kinds), np.uint8)
        self.arrays = list(_placed(self.state_bytes, kinds))
        empty = new_impression(shape.n_positions, shape.n_places)
        kinds = [(array.shape, array.dtype) for array in empty]
        self.page_bytes = np.zeros(sum(_room(size, kind) for size, kind in kinds), np.uint8)
        placed = list(_placed(self.page_bytes, kinds))
        for mine, array in zip(placed, empty, strict=True):
            mine[...] = array
        page = Impression(*placed)
        self.no_page = self.page_bytes.copy()
        self.impression = page._replace(shown=page.ranking[: shape.n_positions])  # a view of the first places
        self.words: Words = np.zeros(_WORDS, np.uint64)


_block_of = functools.lru_cache(maxsize=64)(_Block)


def _placed(block: NDArray[np.uint8], kinds: list[tuple[tuple[int, ...], np.dtype[Any]]]) -> Iterator[NDArray[Any]]:
    at = 0
    for size, kind in kinds:
        yield np.ndarray(size, kind, block, at)
        at += _room(size, kind)


def _room(size: tuple[int, ...], kind: np.dtype[Any]) -> int:
    entries = 1
    for length in size:
        entries *= length
    return -(-entries * kind.itemsize // _ALIGNED) * _ALIGNED


def _own_arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays of a state without its evidence."""
    for name, part in zip(state._fields, state, strict=True):
        if name == EVIDENCE:
            continue
        if isinstance(part, np.ndarray):
            yield part
        else:
            yield from _own_arrays(part)


def _moved(state: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    parts = [
        part if name == EVIDENCE else next(arrays) if isinstance(part, np.ndarray) else _moved(part, arrays)
        for name, part in zip(state._fields, state, strict=True)
    ]
    return type(state)(*parts)


# --- knowledge as one call sees it: its items, its base ranking. A page is a pure function of a view and of coins ---
# A view has a copy of the policy's state whose leader is derived from the call's base ranking. What is large and never
# changed by choosing, the evidence, is shared with the knowledge. Every page is chosen on the same state (``Scratch``).
# So the same coins give the same page as long as nothing was learnt in between, on whichever server.


_SHARED_FROM = 4096
"""Arrays of the evidence with more entries than this are shared, not copied."""


class Proposal(NamedTuple):
    """A page as the policy wants it, and whether it may be served."""

    row: tuple[str, ...]  # by place: the shown items, then those compared without being shown
    law: Law
    challenger: int | None  # its place
    round: int
    fault: str | None


class View:
    """What a call sees; ContradictionError when certificates contradict each other."""

    def __init__(self, knowledge: Knowledge, base: Sequence[str], candidates: Sequence[str] | None = None) -> None:
        self.folds, self.made_from = knowledge.folds, sources(knowledge)
        knowledge = copy.copy(knowledge)
        knowledge.learner = _copied_learner(knowledge.learner)
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
        places = self._learner.kind.places(self._learner.setup)
        self._scratch = scratch = Scratch(self._learner.state, knowledge.k, places)
        self._issue = issuing(self._learner.policy, scratch.state, scratch.words, scratch.impression)

    def is_certain_of(self, knowledge: Knowledge) -> bool:
        """True when it was made from the certificates that hold now."""
        made_from, now = self.made_from, sources(knowledge)
        return len(made_from) == len(now) and all(old is new for old, new in zip(made_from, now, strict=True))

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
            fault=fault_of(self._call, numbers[: learner.n_positions]),
        )

    def _chosen(self, coins: bytes) -> Impression:
        """The page as the policy gives it; it holds until the next one is chosen."""
        scratch = self._scratch
        scratch.restore()
        scratch.state.round[0] = self._round_before(coins)
        scratch.words[:] = np.frombuffer(coins, np.uint64)
        self._issue()
        return scratch.impression

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
    if not impression.frozen[0]:
        return Law(start.tobytes(), end.tobytes())
    exchanges: list[int] = impression.exchanges[:places].astype(np.uint64).tolist()
    return Law(start.tobytes(), end.tobytes(), tuple(impression.weight[:places].tolist()), tuple(exchanges))


def _copied_learner(learner: Learner) -> Learner:
    """A learner that can be rebased without a trace in the original."""
    mine = copied_learner(learner)
    mine.state = _copied(learner.state)
    return mine


def _copied(state: Any) -> Any:
    """The state in arrays of its own, apart from large evidence."""
    parts = [
        _copied_evidence(part) if name == EVIDENCE else part.copy() if isinstance(part, np.ndarray) else _copied(part)
        for name, part in zip(state._fields, state, strict=True)
    ]
    return type(state)(*parts)


def _copied_evidence(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part if part.size > _SHARED_FROM else part.copy()
    return type(part)(*map(_copied_evidence, part))


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


# --- everything that a call may need is compiled or loaded before the first one: no caller waits for it ---


SIZES = (3, 13)
"""Catalogues for which some policy has a state of its own."""

_COINS = bytes(range(32))


def warm_up(policy: str, rule: str, sizes: Sequence[int] = SIZES) -> None:
    """Go through the life of a page on catalogues of these sizes, with knowledge that is thrown away."""
    warm_up_check()
    for size in sizes:
        items = [str(number) for number in range(size)]
        terms = Terms(policy, rule, 1000, 1000, 0)
        knowledge = Knowledge(terms, 2, items)
        _go_through(knowledge, terms, items)
        knowledge.know([*items[1:], "new"])
        View(knowledge, items, ["newer"])
        knowledge.turn_to(1)


def _go_through(knowledge: Knowledge, terms: Terms, items: list[str]) -> None:
    """A page, its clicks, another base ranking, and the questions that the dashboard asks."""
    view = View(knowledge, items)
    page = view.page(_COINS)
    record = PageRecord(
        bytes(16), "", "", terms.policy, view.form, 0, 1, page.round, 1000, 2, b"", bytes(16), _COINS, page.row,
        law=page.law, challenger=page.challenger,
    )  # fmt: skip
    lessons = Lessons.of([Lesson(record, 1), Lesson(record, 2), Lesson(None, 0)])
    if page.law.drawn:  # the watch over orders asks for odds, and a call that wants explanations
        chance_of_order(knowledge.laid_out(lessons)[0], 1, 0, 1)
    for _ in knowledge.learn(lessons):
        knowledge.changed_certificates()
    again = View(knowledge, [items[1], items[0], *items[2:]])
    again.explain()
    knowledge.named([(0, 1)])
