"""Knowledge of a context: a fold over closed pages in display order, whatever their size and their caller.

The fold goes through the evidence of a policy, with its certificates. Time comes in by the pages alone: *epochs* of
``lifetime_ms`` are counted by issue time, and a policy whose certificates have a lifetime sees them as rounds. Page
number n of epoch e has round e R + n, and certificates live for R rounds and the rest of their epoch. So the same
kernels serve the simulator, which counts pages, and the service, which counts days.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from saferank.live.learner import Learner
from saferank.policies import policy_kind
from saferank.policies.safe_draw.constants import TRUST
from saferank.service.knowledge.certified import Certified, Pair
from saferank.service.knowledge.lessons import LaidOut
from saferank.statistics.bets import Bets, set_levels
from saferank.statistics.certificates import ENDLESS, held
from saferank.statistics.pairs import items_of_rows, wins_by_row
from saferank.verbs import Ints

NamedPair = tuple[str, str, int, int]
"""Better and worse item, s and n."""

Changed = tuple[Sequence[NamedPair], Sequence[NamedPair]]
"""Certificates gained and lost."""


class PairProgress(NamedTuple):
    """How far the pairs of a context have come, in numbers that a list of thousands of contexts can afford."""

    compared: int = 0  # pairs with comparisons
    decided: int = 0  # certificates that hold
    lead: int = 0  # of the undecided pair that is nearest to a decision ...
    comparisons: int = 0  # ... and how often it was compared; 0: no undecided pair was compared

    @property
    def progress(self) -> float:
        """How near that pair is. Leads grow like n and the lead that is needed like sqrt(n), so s^2 / n decides.

        Two more comparisons are assumed to be level: one lucky click is no lead.
        """
        return self.comparisons * (self.lead / (self.comparisons + 2)) ** 2


ROUNDS = 1 << 40
"""Rounds of an epoch: more than there are ever pages in one."""


class Terms(NamedTuple):
    """What is fixed when a context is opened, until a reset takes others."""

    policy: str
    rule: str
    window_ms: int
    lifetime_ms: int  # length of an epoch of certificates; 0: they never end
    opened_at: int  # epochs are counted from here
    source_daily_pages: int = 0  # pages of one source that count in a day; 0: all
    first_epoch: int = 0  # the number of the epoch that begins at ``opened_at``
    trust: float = TRUST  # in production's ranking, for a policy that asks for it

    def epoch_at(self, at: int) -> int:
        """The epoch of a page that is issued at this time."""
        return self.first_epoch + (max(0, at - self.opened_at) // self.lifetime_ms if self.lifetime_ms else 0)

    def begin_of(self, epoch: int) -> int:
        """The time at which an epoch begins."""
        return self.opened_at + (epoch - self.first_epoch) * self.lifetime_ms

    def certify_like(self, other: "Terms") -> bool:
        """True when certificates of one are certificates of the other: same policy, rule and lifetime."""
        return (self.policy, self.rule, self.lifetime_ms) == (other.policy, other.rule, other.lifetime_ms)


class Knowledge:
    """The knowledge of the items of a context; it begins with a first call for pages with ``k`` places."""

    def __init__(self, terms: Terms, k: int, items: Sequence[str]) -> None:
        self.terms = terms
        self.epoch = 0
        self.pages = 0  # counted pages of this epoch that were closed
        self.folds = 0  # how often something was learnt: plans look at it
        self.learner = self._new_learner(k, items)
        self.certified = Certified()

    @classmethod
    def restored(cls, terms: Terms, epoch: int, pages: int, learner: bytes) -> "Knowledge":
        """The knowledge of a snapshot."""
        knowledge = cls.__new__(cls)
        knowledge.terms, knowledge.epoch, knowledge.pages, knowledge.folds = terms, epoch, pages, 0
        knowledge.learner = Learner.load(learner)
        knowledge.certified = Certified(held_certificates(knowledge.learner))
        return knowledge

    @property
    def alarms(self) -> int:
        """How often certificates contradicted each other and were dropped."""
        return self.learner.lifetime_alarms()

    @property
    def index(self) -> dict[str, int]:
        """The numbers of items."""
        return cast(dict[str, int], self.learner.index)  # items of the service are text

    @property
    def issued(self) -> int:
        """The round of the newest page."""
        return self.epoch * ROUNDS + self.pages

    def _new_learner(self, k: int, items: Sequence[str]) -> Learner:
        """Certificates that never end have an endless lifetime, where the policy can have one."""
        kind, lifetime = policy_kind(self.terms.policy), ROUNDS if self.terms.lifetime_ms else ENDLESS
        learner = Learner(
            self.terms.policy,
            original=items[:k],
            candidates=items[k:],
            rule=self.terms.rule,
            lifetime=lifetime if kind.lifetimes else None,
            trust=self.terms.trust if kind.trusts else None,
        )
        learner.advance(self.epoch * ROUNDS)
        _expect(learner, 0)
        return learner

    def begin_again(
        self, k: int | None = None, items: Sequence[str] | None = None, terms: Terms | None = None
    ) -> list[NamedPair]:
        """Forget everything that was learnt; returns certificates that held.

        Items keep their numbers, unless other ones and a page size are named, with the terms that hold from now on.
        """
        lost, known = self.named(self.certified.pairs), [str(item) for item in self.learner.items]
        self.terms = self.terms if terms is None else terms
        self.learner = self._new_learner(
            self.learner.n_positions if k is None else k, known if items is None else items
        )
        self.certified, self.pages, self.folds = Certified(), 0, self.folds + 1
        return lost

    # --- the fold ---

    def turn_to(self, epoch: int) -> bool:
        """Begin a later epoch; True when one began."""
        if epoch <= self.epoch:
            return False
        ended, self.epoch, self.pages, self.folds = self.pages, epoch, 0, self.folds + 1
        self.learner.advance(epoch * ROUNDS)
        _expect(self.learner, ended)
        return True

    def learn(self, part: LaidOut) -> Iterator[int]:
        """Learn lessons of this epoch; stops after each that changed the certificates, giving its number."""
        room, done, first, self.folds = part.room, 0, self.pages - part.begin, self.folds + 1
        while done < part.rows:
            before = (self.learner.certificates_given(), self.alarms)
            done = self.learner.fold(room.pages, room.workspace, done, part.rows)
            number = int(room.lesson[done - 1])
            self.pages = first + number + 1
            if (self.learner.certificates_given(), self.alarms) != before:
                yield number
        self.pages = first + part.end

    def contradicts_itself(self) -> bool:
        """True when certificates that never end say that an item is better than itself."""
        return self.certified.is_circular

    def changed_certificates(self) -> tuple[list[NamedPair], list[NamedPair]]:
        """Those that were gained and those that were lost since the last call."""
        before, now = self.certified.pairs, tuple(held_certificates(self.learner))
        if before == now:
            return [], []
        known, holding = set(before), set(now)
        self.certified = Certified(now)
        gained, lost = [pair for pair in now if pair not in known], [pair for pair in before if pair not in holding]
        return self.named(gained), self.named(lost)

    # --- what it knows, for people, whatever evidence the policy keeps ---

    def named(self, pairs: Iterable[Pair]) -> list[NamedPair]:
        """Pairs by name, with the lead s of the first and the number n of comparisons."""
        items, duel = self.learner.items, self.learner.duel
        return [(str(items[i]), str(items[j]), *duel(items[i], items[j])) for i, j in pairs]

    def compared(self, most: int) -> list[NamedPair]:
        """Pairs with comparisons, at most ``most``, the leading item first; in the order of the items' numbers."""
        low, high, first, second = (column[:most].tolist() for column in self._table())
        rows, items = zip(low, high, first, second, strict=True), [str(item) for item in self.learner.items]
        return [
            (items[i], items[j], a - b, a + b) if a >= b else (items[j], items[i], b - a, a + b) for i, j, a, b in rows
        ]

    def race(self) -> PairProgress:
        """The race of its pairs. It does not depend on the order in which the learner keeps them."""
        low, high, first, second = self._table()
        n, s = first + second, np.abs(first - second)
        surely, decided = self.certified.surely, len(self.certified.pairs)
        for at in np.lexsort((n, n * (s / (n + 2)) ** 2))[::-1].tolist():
            one, other = int(low[at]), int(high[at])
            if not surely(one, other) and not surely(other, one):
                return PairProgress(len(n), decided, int(s[at]), int(n[at]))
        return PairProgress(len(n), decided)

    def _table(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The pairs with comparisons, in the order of their items: both items, wins of the first, of the second."""
        duels = self.learner.evidence.duels
        every = wins_by_row(duels)
        rows = np.flatnonzero(every.any(axis=1))
        low, high = items_of_rows(duels, rows)
        order = np.lexsort((high, low))
        wins = every[rows[order]]
        return low[order], high[order], wins[:, 0], wins[:, 1]


def learner_with(learner: Learner, items: Iterable[str]) -> Learner:
    """A learner that knows these items too, without a trace in the original; what did not grow is shared."""
    mine = copy.copy(learner)
    mine.items, mine.index, mine.slots = list(learner.items), dict(learner.index), {}
    mine.know(items)
    return mine


def held_certificates(learner: Learner) -> list[Pair]:
    """The pairs (better, worse) whose certificates hold, in the order in which they were given."""
    return list(dict.fromkeys((i, j) for i, j, _ in held(learner.evidence.duels.certificates)))


def _expect(learner: Learner, pages: int) -> None:
    """Days have no number of pages: an epoch is expected to have as many as the one before had, at first few."""
    duels = getattr(learner.evidence, "duels", None)
    if isinstance(duels, Bets) and learner.lifetime == ROUNDS:
        duels.epoch[2] = pages
        set_levels(duels)
