"""Knowledge of a context from pages of one size: a fold over closed pages in display order.

The fold goes through the state of a policy, which holds the evidence and the certificates. Time comes in by the pages
alone: *epochs* of ``lifetime_ms`` are counted by issue time, and a policy whose certificates have a lifetime sees them
as rounds. Page number n of epoch e has round e R + n, and certificates live for R rounds and the rest of their epoch.
So the same kernels serve the simulator, which counts pages, and the service, which counts days.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from saferank.live.fewer_items import can_lose_items, without_items
from saferank.live.learner import Learner
from saferank.policies import policy_kind
from saferank.saved_state import thinned
from saferank.service.knowledge.certified import Certified, Pair
from saferank.service.knowledge.lessons import Laid, Lessons, as_pages, renumbered
from saferank.service.knowledge.sights import Sights
from saferank.statistics.lifetimes import LARGEST_CATALOGUE
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


SPARE = 32
"""When items must make room for new ones, so many more go: it is done seldom then."""

TURNOVER = 64
"""If room must be made again after fewer pages than this, items do not come and go: the catalogue is too large."""


class Terms(NamedTuple):
    """What is fixed when a context is opened, until a reset takes others."""

    policy: str
    rule: str
    window_ms: int
    lifetime_ms: int  # length of an epoch of certificates; 0: they never end
    opened_at: int  # epochs are counted from here
    source_daily_pages: int = 0  # pages of one source that count in a day; 0: all
    first_epoch: int = 0  # the number of the epoch that begins at ``opened_at``

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
        self.sights = Sights(len(items))

    @classmethod
    def restored(
        cls,
        terms: Terms,
        k: int,
        epoch: int,
        pages: int,
        learner: bytes,
        misfits: int = 0,
        sights: Sequence[int] = (),
    ) -> "Knowledge":
        """The knowledge of a snapshot."""
        knowledge = cls.__new__(cls)
        knowledge.terms, knowledge.k, knowledge.epoch, knowledge.pages = terms, k, epoch, pages
        knowledge.folds, knowledge.misfits, knowledge.others = 0, misfits, ()
        knowledge.learner = Learner.load(learner)
        knowledge.certified = Certified(held_certificates(knowledge.learner))
        knowledge.sights = Sights(len(knowledge.learner.items), sights)
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

    def know(self, items: Sequence[str]) -> Changed | None:
        """These items take part, and no others; returns the certificates that change by it, None for none.

        Certificates with a lifetime are kept for every pair, so there is a largest catalogue for them. When the items
        that were ever seen outgrow it, others than these make room. If these alone are too many, they begin again.
        """
        learner, changed = self.learner, None
        new = [item for item in items if item not in learner.index]
        if new and self._lifetime(len(learner.items) + len(new)) != learner.lifetime:
            if self._lifetime(len(items)) != learner.lifetime or not can_lose_items(learner):
                return (), self.begin_again(items)
            changed = self.make_room(len(learner.items) + len(new) - LARGEST_CATALOGUE, items)
            learner = self.learner
        present = np.zeros(len(learner.items) + len(new), np.bool_)
        present[[learner.index[item] for item in items if item in learner.index]] = True
        present[len(learner.items) :] = True
        if new or not np.array_equal(present, learner.present):
            learner.regroup(present, new)
            if new:
                self.sights = self.sights.with_more(len(new))
            self.folds += 1
        return changed

    def make_room(self, wanted: int, items: Sequence[str]) -> Changed | None:
        """Forget at least so many items, those first that no page has compared for the longest time, none of these.

        Returns the certificates that change by it, None for none: lost are those with an item that goes, gained those
        that followed from them.
        """
        stay = {self.learner.index[item] for item in items if item in self.learner.index}
        oldest = [number for number in self.sights.oldest_first() if number not in stay]
        return self._lose(oldest[: wanted + SPARE])

    def _lose(self, gone: Sequence[int]) -> Changed | None:
        before = {pair[:2]: pair for pair in self.named(self.certified.pairs)}
        self.learner = without_items(self.learner, gone)
        self.learner.state = thinned(self.learner.state)
        self.certified, self.folds = Certified(held_certificates(self.learner)), self.folds + 1
        self.sights = self.sights.without(gone)
        now = {pair[:2]: pair for pair in self.named(self.certified.pairs)}
        gained, lost = (
            [now[pair] for pair in now.keys() - before.keys()],
            [before[p] for p in before.keys() - now.keys()],
        )
        return (sorted(gained), sorted(lost)) if gained or lost else None

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

    def make_fit(self, record: PageRecord) -> Changed | None:
        """Let the items of a page take part; returns the certificates that change by it, None for none.

        A form of the policy that only a few pages have is not taken on, so that base rankings of different lengths
        that alternate do not undo each other: their pages teach nothing then.
        """
        if record.form != self.form:
            self.misfits += 1
            if self.misfits < MISFITS:
                return None
        changed = self._make_room_for(record) if record.form == self.form else None
        here, old = [str(item) for item in self.learner.present_items()], self.learner
        everything = [*map(str, old.items), *record.row]
        for items in (dict.fromkeys([*here, *record.row]), record.row, dict.fromkeys([*everything, *FILLERS])):
            self.learner, sights = copied_learner(old), self.sights
            again = self.know(list(items))
            if self.form == record.form:
                self.learner.state = thinned(self.learner.state)  # not in know: that takes longer than a view may
                self.misfits = 0
                return again or changed
            self.learner, self.sights = old, sights
        return changed

    def _make_room_for(self, record: PageRecord) -> Changed | None:
        """Nobody tells the fold which items have left: those make room that no page has compared for a long time."""
        new = sum(item not in self.learner.index for item in record.row)
        wanted = len(self.learner.items) + new - LARGEST_CATALOGUE
        if not new or wanted <= 0 or not can_lose_items(self.learner):
            return None
        made_lately = self.sights.pages_since is not None and self.sights.pages_since < TURNOVER
        return None if made_lately else self.make_room(wanted, record.row)

    def _lifetime(self, n_items: int) -> int | None:
        """Rounds of an epoch, if the policy and the size of the catalogue allow certificates with a lifetime.

        They are used without an end of epochs too: certificates that contradict each other are dropped then.
        """
        kind = policy_kind(self.terms.policy)
        try:
            kind.check_lifetime(ROUNDS, n_items)
        except ValueError:
            return None
        return ROUNDS

    def _new_learner(self, items: Sequence[str]) -> Learner:
        learner = Learner(
            self.terms.policy,
            original=items[: self.k],
            candidates=items[self.k :],
            rule=self.terms.rule,
            lifetime=self._lifetime(len(items)),
        )
        learner.state.round[0] = self.epoch * ROUNDS
        learner.advance()
        learner.state = thinned(learner.state)
        return learner

    def begin_again(self, items: Sequence[str] | None = None, terms: Terms | None = None) -> list[NamedPair]:
        """Forget everything that was learnt, and take other terms if they are named; returns certificates that held."""
        lost = self.named(self.certified.pairs)
        present = [str(item) for item in self.learner.present_items()]
        if terms is not None and terms != self.terms:
            self.terms, self.misfits = terms, 0
        self.learner = self._new_learner(present if items is None else items)
        self.certified, self.pages, self.folds = Certified(), 0, self.folds + 1
        self.sights = Sights(len(self.learner.items))
        return lost

    # --- the fold ---

    def turn_to(self, epoch: int) -> bool:
        """Begin a later epoch; True when one began."""
        if epoch <= self.epoch:
            return False
        self.epoch, self.pages, self.folds = epoch, 0, self.folds + 1
        self.learner.state.round[0] = epoch * ROUNDS
        self.learner.advance()
        self.learner.state = thinned(self.learner.state)
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
            first_done, done = done, self.learner.fold(pages, done)
            self.sights.note(pages, first_done, done)
            self.pages = first + numbers[done - 1] + 1
            if (self.learner.certificates_given(), self.alarms) != before:
                yield numbers[done - 1]

    def contradicts_itself(self) -> bool:
        """True when certificates that never end say that an item is better than itself."""
        return any(self.certified.surely(item, item) for item in self.certified.winners())

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
    """The pairs (better, worse) whose certificates hold."""
    table: Any = getattr(learner.state.duels, "table", None)
    if table is not None:
        return [(int(better), int(worse)) for better, worse in np.argwhere(table.expires > 0)]
    better, worse, _, given = learner.state.duels.certificates
    size = int(given[0])
    return list(dict.fromkeys(zip(better[:size].tolist(), worse[:size].tolist(), strict=True)))
