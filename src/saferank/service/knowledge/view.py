"""Knowledge as one call sees it: its items, its base ranking. A page is a pure function of a view and of coins.

A view has a copy of the policy's state whose leader is derived from the call's base ranking. What is large and never
changed by choosing, the evidence, is shared with the knowledge. Every page is chosen on the same state (``Scratch``).
So the same coins give the same page as long as nothing was learnt in between, on whichever server.
"""

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from saferank.live.explanation import Explanation
from saferank.live.learner import Learner
from saferank.policies import issuing
from saferank.service.knowledge.certified import Certified, exchanged
from saferank.service.knowledge.knowledge import ROUNDS, Knowledge, copied_learner
from saferank.service.knowledge.page_check import CheckedCall, fault_of
from saferank.service.knowledge.scratch import EVIDENCE, Scratch
from saferank.service.knowledge.sharing import all_certified, teach
from saferank.store.page_record import Law
from saferank.verbs import NOBODY, Impression

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
