"""Knowledge of a context from pages of one size: a fold over closed pages in display order.

The fold goes through the state of a policy, which holds the evidence and the certificates. Time comes in by the pages
alone: *epochs* of ``lifetime_ms`` are counted by issue time, and a policy whose certificates have a lifetime sees them
as rounds. Page number n of epoch e has round e R + n, and certificates live for R rounds and the rest of their epoch.
So the same kernels serve the simulator, which counts pages, and the service, which counts days.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from saferank.live.learner import Learner
from saferank.policies import policy_kind
from saferank.policies.safe_draw.constants import TRUST
from saferank.service.knowledge.certified import Certified, Pair
from saferank.service.knowledge.lessons import Laid, Lessons, as_pages, renumbered
from saferank.statistics.bets import Bets, set_levels
from saferank.statistics.certificates import ENDLESS, held
from saferank.store.page_record import PageRecord

NamedPair = tuple[str, str, int, int]
"""Better and worse item, s and n."""

Changed = tuple[Sequence[NamedPair], Sequence[NamedPair]]
"""Certificates gained and lost."""

MISFITS = 8
"""So many more pages of another form than of the present one, and the knowledge takes on the other form."""

FILLERS = [f"\x01{number}" for number in range(16)]
"""No item has such a name: they stand for items of a call that no page has shown, when only their number matters."""

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
    """What is known of the items of a context from pages with ``k`` places."""

    def __init__(self, terms: Terms, k: int, items: Sequence[str]) -> None:
        self.terms, self.k = terms, k
        self.epoch = 0
        self.pages = 0  # counted pages of this epoch that were closed
        self.folds = 0  # how often something was learnt: views look at it
        self.misfits = 0  # how many more pages of another form there were than of the present one, lately
        self.learner = self._new_learner(items)
        self.certified = Certified()
        self.others: tuple[Knowledge, ...] = ()  # that of other page sizes of the context (``sharing``)

    @classmethod
    def restored(
        cls,
        terms: Terms,
        k: int,
        epoch: int,
        pages: int,
        learner: bytes,
        misfits: int = 0,
    ) -> "Knowledge":
        """The knowledge of a snapshot."""
        knowledge = cls.__new__(cls)
        knowledge.terms, knowledge.k, knowledge.epoch, knowledge.pages = terms, k, epoch, pages
        knowledge.folds, knowledge.misfits, knowledge.others = 0, misfits, ()
        knowledge.learner = Learner.load(learner)
        knowledge.certified = Certified(held_certificates(knowledge.learner))
        return knowledge

    @property
    def form(self) -> str:
        """Which form of the policy's state is at work: drawn pages of another form cannot be learnt."""
        return type(self.learner.state).__name__

    @property
    def alarms(self) -> int:
        """How often certificates contradicted each other and were dropped."""
        return self.learner.lifetime_alarms()

    def name_of(self, number: int) -> str:
        """An item."""
        return str(self.learner.items[number])

    # --- items ---

    def know(self, items: Sequence[str]) -> None:
        """These items take part, and no others. What is known of others stays, for the time when they return."""
        learner = self.learner
        new = [item for item in items if item not in learner.index]
        present = np.zeros(len(learner.items) + len(new), np.bool_)
        present[[learner.index[item] for item in items if item in learner.index]] = True
        present[len(learner.items) :] = True
        if new or not np.array_equal(present, learner.present):
            learner.regroup(present, new)
            self.folds += 1

    def fitting_until(self, lessons: Lessons) -> int:
        """The number of the first lesson that cannot be learnt yet.

        Its items do not take part, or it was made by another form of the policy than the present one.
        """
        rows = lessons.rows(self._index)
        here = np.append(self.learner.present, False)[rows]  # the last entry is for unknown items, -1
        used = np.arange(rows.shape[1]) < lessons.records.column("places")[:, None]
        unfit = np.flatnonzero(~lessons.of_form(self.form) | (used & ~here).any(axis=1))
        return int(lessons.numbers[unfit[0]]) if len(unfit) else lessons.size

    @property
    def _index(self) -> dict[str, int]:
        return cast(dict[str, int], self.learner.index)  # items of the service are text

    def make_fit(self, record: PageRecord) -> None:
        """Let the items of a page take part.

        A form of the policy that only a few pages have is not taken on, so that base rankings of different lengths
        that alternate do not undo each other: their pages teach nothing then.
        """
        if record.form != self.form:
            self.misfits += 1
            if self.misfits < MISFITS:
                return
        here, old = [str(item) for item in self.learner.present_items()], self.learner
        everything = [*map(str, old.items), *record.row]
        for items in (dict.fromkeys([*here, *record.row]), record.row, dict.fromkeys([*everything, *FILLERS])):
            self.learner = copied_learner(old)
            self.know(list(items))
            if self.form == record.form:
                self.misfits = 0
                return
            self.learner = old

    def _new_learner(self, items: Sequence[str]) -> Learner:
        """Certificates that never end have an endless lifetime, where the policy can have one."""
        kind, lifetime = policy_kind(self.terms.policy), ROUNDS if self.terms.lifetime_ms else ENDLESS
        learner = Learner(
            self.terms.policy,
            original=items[: self.k],
            candidates=items[self.k :],
            rule=self.terms.rule,
            lifetime=lifetime if kind.lifetimes else None,
            trust=self.terms.trust if kind.trusts else None,
        )
        learner.state.round[0] = self.epoch * ROUNDS
        learner.advance()
        _expect(learner, 0)
        return learner

    def begin_again(self, items: Sequence[str] | None = None, terms: Terms | None = None) -> list[NamedPair]:
        """Forget everything that was learnt, and take other terms if they are named; returns certificates that held."""
        lost = self.named(self.certified.pairs)
        present = [str(item) for item in self.learner.present_items()]
        if terms is not None and terms != self.terms:
            self.terms, self.misfits = terms, 0
        self.learner = self._new_learner(present if items is None else items)
        self.certified, self.pages, self.folds = Certified(), 0, self.folds + 1
        return lost

    # --- the fold ---

    def turn_to(self, epoch: int) -> bool:
        """Begin a later epoch; True when one began."""
        if epoch <= self.epoch:
            return False
        ended, self.epoch, self.pages, self.folds = self.pages, epoch, 0, self.folds + 1
        self.learner.state.round[0] = epoch * ROUNDS
        self.learner.advance()
        _expect(self.learner, ended)
        return True

    def laid_out(self, lessons: Lessons) -> Laid:
        """Closed pages of this epoch, to be learnt."""
        return as_pages(lessons, self._index, self.k, self.form)

    def learn(self, lessons: Lessons, laid: Laid | None = None) -> Iterator[int]:
        """Learn from closed pages of this epoch; stops after each that changed the certificates, giving its number.

        ``laid`` is what is left of them when comparisons that do not count were taken out.
        """
        pages, numbers = self.laid_out(lessons) if laid is None else laid
        learner = self.learner
        done, first, self.folds = 0, self.pages, self.folds + 1
        self.misfits = max(0, self.misfits - int(lessons.of_form(self.form).sum()))
        while done < len(numbers):
            if learner is not self.learner:  # everything began again: items have other numbers
                pages = renumbered(pages, [self.learner.index.get(item, -1) for item in learner.items])
                learner = self.learner
            before = (self.learner.certificates_given(), self.alarms)
            done = self.learner.fold(pages, done)
            self.pages = first + numbers[done - 1] + 1
            if (self.learner.certificates_given(), self.alarms) != before:
                yield numbers[done - 1]

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

    def named(self, pairs: Iterable[Pair]) -> list[NamedPair]:
        """Pairs by name, with the lead s of the first and the number n of comparisons."""
        items, duel = self.learner.items, self.learner.duel
        return [(str(items[i]), str(items[j]), *duel(items[i], items[j])) for i, j in pairs]


def copied_learner(learner: Learner) -> Learner:
    """A learner whose items may change without a trace in the original; large evidence is shared until it does."""
    mine = copy.copy(learner)
    mine.items, mine.index = list(learner.items), dict(learner.index)
    return mine


def held_certificates(learner: Learner) -> list[Pair]:
    """The pairs (better, worse) whose certificates hold, in the order in which they were given."""
    return list(dict.fromkeys((i, j) for i, j, _ in held(learner.state.duels.certificates)))


def _expect(learner: Learner, pages: int) -> None:
    """Days have no number of pages: an epoch is expected to have as many as the one before had, at first few."""
    if isinstance(learner.state.duels, Bets) and learner.lifetime == ROUNDS:
        learner.state.duels.epoch[2] = pages
        set_levels(learner.state.duels)
