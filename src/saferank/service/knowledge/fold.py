"""The knowledge of a context as the fold of its closed pages in display order.

``Fold.fold(pages, through)`` is deterministic, and closings may cut the pages into batches as they like: every
decision depends on the pages alone and on the times at which they were issued. So a replay, another server, and one
that continues after a crash come to the same knowledge, the same versions and the same alarms.

A page names everything that the fold needs to know of it. Catalogues are not looked at: they are written in the
background and may come late or never.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from saferank.service.knowledge.arms import (
    ARMS,
    EXPLORE,
    HOLDOUT,
    HOUR_MS,
    LEARNING,
    PROVEN,
    REPEAT,
    SHADOW,
    UNCHANGED,
    ComparedArms,
    CountedPages,
    ShadowCounts,
    with_shadow_page,
)
from saferank.service.knowledge.catalogues import Catalogue, items_of
from saferank.service.knowledge.certified import exchanged
from saferank.service.knowledge.knowledge import Changed, Knowledge, Terms
from saferank.service.knowledge.lessons import ClosedPages, Lessons, NewestPage, NumberedPages, look_of
from saferank.service.knowledge.votes import OrderWatch, SourceCounts, Votes, without_repeats
from saferank.store.contract import AlarmRow, PageRow, VersionRow
from saferank.store.page_record import OVER
from saferank.store.record_columns import POLICY
from saferank.verbs import Flags, Ints

_AHEAD = 16
"""Lessons that are looked at after one with new items; twice as many each time that all items are known."""

_STEPS = 3
"""Epochs in a row that are begun one by one; after these nothing is left that could end."""


class Moment(NamedTuple):
    """What brings a version about: a time, and a page if it was one."""

    at: int
    impression: bytes | None = None


class Fold:
    """The knowledge of a context through a time; ``versions`` and ``alarm_rows`` are those since ``take_news``."""

    def __init__(self, context: int, terms: Terms) -> None:
        self.context, self.terms, self.opened_terms = context, terms, terms
        self.terms_version = 0  # the first version under a policy, rule and lifetime that a reset changed
        self.knowledge: Knowledge  # from ``opened``, or of a publication
        self.look = NewestPage((), ())  # of the newest page that was learnt, or of the first call
        self.catalogue = b""  # of the newest page
        self.version = 0
        self.changed_at = 0
        self.through = 0  # pages issued until then are in it
        self.operation = 0  # operations of the context up to this one are in it
        self.tallies = [[0, 0, 0] for _ in ARMS]  # closed pages, those with clicks, clicks
        self.shadow = ShadowCounts()
        self.rolled_back_at = 0  # by a rollback or a reset: pages issued until then are not counted
        self.rollback_version = 0  # the first version that the newest rollback or reset made
        self.alarms = {"illegal_page": 0, "contradiction": 0, "exchange_share": 0, "unbalanced_arms": 0}
        self.epoch = 0
        self.window = 0  # the newest window with a counted page ...
        self.visitors: set[int] = set()  # ... and the visitors who had one in it
        self.votes, self.sources, self.watch = Votes(), SourceCounts(terms.source_daily_pages), OrderWatch()
        self.learnt = 0  # pages whose clicks were learnt
        self.checked = 0  # pages of the policy that were shown
        self.worst = 0  # the largest share of its allowance, in percent, that a page of the policy may have used
        self.compared = ComparedArms(1)  # served pages beside the holdout
        self.versions: list[VersionRow] = []
        self.alarm_rows: list[AlarmRow] = []
        self.version_made: Callable[[VersionRow], None] = self.versions.append

    @classmethod
    def opened(cls, context: int, terms: Terms, k: int, digest: bytes, lists: Catalogue) -> "Fold":
        """The fold of no pages: the context as its first call opened it."""
        fold = cls(context, terms)
        fold.catalogue, fold.compared = digest, ComparedArms.of_page_size(k)
        fold.look = NewestPage(tuple(lists[0][:k]), tuple(items_of(lists)))
        fold.knowledge = Knowledge(terms, k, fold._items())
        fold._new_version("opened", Moment(terms.opened_at))
        return fold

    @property
    def k(self) -> int:
        """The size of the newest page that was learnt."""
        return len(self.look.base)

    @property
    def pages(self) -> int:
        """Pages that are in it."""
        return sum(tally[0] for tally in self.tallies)

    def leader(self) -> tuple[str, ...]:
        """The leader that certified exchanges make of production's newest page."""
        look, index = self.look, self.knowledge.index
        if not all(item in index for item in look.base):
            return look.base
        present = sum(1 << index[item] for item in dict.fromkeys([*look.base, *look.items]) if item in index)
        row = exchanged(self.knowledge.certified, [index[item] for item in look.base], present).row
        return tuple(self.knowledge.name_of(number) for number in row)

    def take_news(self) -> tuple[list[VersionRow], list[AlarmRow]]:
        """Versions and alarms since the last call."""
        news = (self.versions[:], self.alarm_rows[:])
        self.versions.clear()
        self.alarm_rows.clear()
        return news

    # --- the fold ---

    def fold(self, pages: Iterable[PageRow], through: int) -> None:
        """Take in pages, which are all those after ``self.through`` and at or before ``through``, in display order.

        DamagedRecordError when a record is not as it was written.
        """
        closed = ClosedPages(list(pages))
        closed.records.check()
        self.take(closed, through)

    def take(self, pages: ClosedPages, through: int) -> None:
        """The same, for pages whose records were read already."""
        for part in self._by_epoch(pages):
            self.turn_to(int(part.issued_at[0]))
            self._take(part)
        self.turn_to(through)
        self.through = max(self.through, through)

    def _by_epoch(self, pages: ClosedPages) -> Iterator[ClosedPages]:
        epoch_at, times = self.terms.epoch_at, pages.issued_at
        if len(pages) and epoch_at(int(times[0])) == epoch_at(int(times[-1])):
            yield pages
        else:
            yield from pages.cut_where(np.array([epoch_at(at) for at in times.tolist()]))

    def recall(self, pages: Iterable[PageRow]) -> None:
        """Note the visitors of pages that are in the fold already, those of the newest window."""
        self._firsts(ClosedPages(list(pages)))

    def _take(self, pages: ClosedPages) -> None:
        """Take in pages of one epoch. Which page counts must not depend on its arm."""
        if not len(pages):
            return
        arms, counted = pages.records.column("arm"), self._admitted(pages, self._firsts(pages))
        self._tally(pages, np.where(counted | ~pages.takes_part, arms, REPEAT))
        self._compare(pages.select(counted))
        for number in np.flatnonzero(arms == SHADOW).tolist():
            clicks = pages.row(number).clicks
            self.shadow = with_shadow_page(self.shadow, pages.records.record(number), clicks)
        mine = pages.records.has_text(POLICY, self.terms.policy)  # others' servers had not yet read of a reset
        self._learn(pages.select(counted & (arms == EXPLORE) & mine))
        self.catalogue = pages.records.field("catalogue")[-1].tobytes()

    def _firsts(self, pages: ClosedPages) -> Flags:
        """A visitor's first page in a window counts, in display order; none does from before a rollback or reset."""
        records, issued_at = pages.records, pages.issued_at
        firsts = pages.takes_part & (issued_at > self.rolled_back_at)
        known = np.flatnonzero(firsts & records.has_visitor)
        windows, visitors = (issued_at // records.column("window_ms"))[known], records.visitor[known]
        for run in np.split(np.arange(len(known)), 1 + np.flatnonzero(np.diff(windows))) if len(known) else ():
            if windows[run[0]] != self.window:
                self.window, self.visitors = int(windows[run[0]]), set()
            here, first = np.unique(visitors[run], return_index=True)
            firsts[known[run]] = False
            if seen := self.visitors.intersection(here.tolist()):
                first = first[~np.isin(here, list(seen))]
            firsts[known[run[first]]] = True
            self.visitors.update(here.tolist())
        return firsts

    def _admitted(self, pages: ClosedPages, firsts: Flags) -> Flags:
        """Without pages of sources that have had all that count in a day."""
        records, issued_at = pages.records, pages.issued_at
        for number in np.flatnonzero(firsts & records.has_source).tolist():
            firsts[number] = self.sources.admits(records.source[number].tobytes(), int(issued_at[number]))
        return firsts

    def _tally(self, pages: ClosedPages, arms: Ints) -> None:
        clicks, hours = pages.n_clicks, self.compared.hours_of(pages.issued_at)
        for hour in np.unique(hours).tolist():
            self.compared.count_clicked(hour * HOUR_MS, int((clicks[hours == hour] > 0).sum()))
        used = pages.records.field("used")
        shown = used[pages.records.field("arm") == EXPLORE]
        self.worst = max(self.worst, int(shown.max(initial=0)))
        self.checked += len(shown)
        self.alarms["illegal_page"] += int((used == OVER).sum())
        for arm, tally in enumerate(self.tallies):
            mine = clicks[arms == arm]
            tally[0] += len(mine)
            tally[1] += int((mine > 0).sum())
            tally[2] += int(mine.sum())

    def _compare(self, pages: ClosedPages) -> None:
        """Count the policy's pages, bin by bin, and compare those that a coin could have put into the holdout."""
        for part in pages.cut_where(self.compared.hours_of(pages.issued_at)):
            arm, records = part.records.field("arm"), part.records
            changed = np.where(records.is_leader, PROVEN, LEARNING)
            tipped = self.compared.count(
                CountedPages(
                    issued_at=part.issued_at,
                    served=arm != HOLDOUT,
                    share=records.field("share"),
                    clicks=part.n_clicks,
                    chosen=arm == EXPLORE,
                    change=np.where(records.differs_from_base, changed, UNCHANGED),
                )
            )
            if tipped is not None:  # the coins do not explain how many pages are in the holdout: told once
                self.alarms["unbalanced_arms"] += 1
                self.alarm_rows.append(AlarmRow(tipped[0], self.context, "unbalanced_arms", tipped[1]))

    def turn_to(self, at: int) -> None:
        """Begin the epochs up to a time: certificates may end."""
        epoch = self.terms.epoch_at(at)
        while self.epoch < epoch:
            steps = min(self.epoch + _STEPS, epoch)
            for step in [*range(self.epoch + 1, steps + 1), *([epoch] if epoch > steps else [])]:
                self.epoch = step
                if self.knowledge.turn_to(step):
                    self._follow("expired", Moment(self.terms.begin_of(step)))

    def _learn(self, run: ClosedPages) -> None:
        """Learn from counted pages of one epoch."""
        lessons = Lessons(run.records, run.clicks)
        self.learnt += int((run.n_clicks > 0).sum())
        begin, ahead = 0, lessons.size
        while begin < lessons.size:
            some = lessons.between(begin, begin + ahead)
            known = self.knowledge.known_until(some)
            ahead *= 2
            if known == 0:
                self.knowledge.learner.know(some.records.record(0).row)
                known, ahead = 1, _AHEAD  # items after these get their numbers when it is their turn
            self._learn_known(some.between(0, known), run.select(slice(begin, begin + known)))
            begin += known
        if lessons.size:
            self.look = look_of(lessons.records.record(-1))

    def _learn_known(self, lessons: Lessons, run: ClosedPages) -> None:
        knowledge = self.knowledge
        alarms = knowledge.alarms
        for number in knowledge.learn(lessons, self._left_to_learn(lessons, run)):
            moment = Moment(int(run.issued_at[number]), run.row(number).impression)
            self.look = look_of(lessons.records.record(number))
            self._follow("page" if knowledge.alarms == alarms else "contradiction", moment)
            self._sound(knowledge.alarms - alarms, moment)
            if knowledge.contradicts_itself():
                lost = knowledge.begin_again()
                self._new_version("contradiction", moment, ((), lost))
                self._sound(1, moment)
            alarms = knowledge.alarms

    def _left_to_learn(self, lessons: Lessons, run: ClosedPages) -> NumberedPages:
        """Lessons laid out, without comparisons that do not count; an alarm if their orders are not as drawn."""
        numbered, items = self.knowledge.laid_out(lessons), self.knowledge.learner.items
        for number, item in self.watch.look_at(numbered, lessons, items):
            self.alarms["exchange_share"] += 1
            detail = f"on clicked pages {item!r} does not stand where it was drawn to: reports are chosen by order"
            self.alarm_rows.append(AlarmRow(int(run.issued_at[number]), self.context, "exchange_share", detail))
        self.votes.turn_to(self.epoch)
        return without_repeats(self.votes, numbered, lessons, items)

    def _sound(self, new: int, moment: Moment) -> None:
        if new > 0:
            self.alarms["contradiction"] += new
            detail = "certificates contradicted each other; dropped"
            self.alarm_rows.append(AlarmRow(moment.at, self.context, "contradiction", detail))

    def _follow(self, cause: str, moment: Moment) -> None:
        """Make a new version if the certificates have changed."""
        changed = self.knowledge.changed_certificates()
        if changed[0] or changed[1]:
            self._new_version(cause, moment, changed)

    def _new_version(
        self, cause: str, moment: Moment, changed: Changed = ((), ()), why: str | None = None, **facts: Any
    ) -> None:
        """The present knowledge gets a number."""
        self.version += 1
        self.changed_at = moment.at
        evidence = to_json({"gained": changed[0], "lost": changed[1], **facts})
        leader = to_json(self.leader())
        self.version_made(
            VersionRow(self.context, self.version, moment.at, cause, leader, moment.impression, evidence, why)
        )

    # --- operations ---

    def roll_back(self, saved: "Fold", operation: int, at: int, why: str) -> None:
        """Know what ``saved`` knows, which is this context at an earlier version; open pages are not counted.

        The version must not be older than ``terms_version``: its certificates would be of another kind.
        Votes stay: what is forgotten of a visitor cannot be said again in the same epoch.
        """
        self.knowledge, self.look, self.epoch = saved.knowledge, saved.look, saved.epoch
        self._undo(operation, at)
        self.knowledge.terms = self.terms
        gained = self.knowledge.named(self.knowledge.certified.pairs)
        self._new_version("rollback", Moment(at), (gained, ()), why, through=self.through)

    def reset(self, operation: int, at: int, why: str, terms: Mapping[str, Any] | None = None) -> None:
        """Know nothing of any order; open pages are not counted. ``terms`` are those that hold from now on.

        With another policy, rule or lifetime a new epoch begins, and epochs are counted from here.
        Counters, the comparison with the holdout, votes and sources stay: forgetting must not give anybody a second
        vote, nor the guardrail a new beginning.
        """
        self._undo(operation, at)
        self._take_terms(self.terms._replace(**(terms or {})), at)
        lost = self.knowledge.begin_again(self.k, self._items(), self.terms)
        self.knowledge.turn_to(self.epoch)
        self._new_version("reset", Moment(at), ((), lost), why, through=self.through)

    def _take_terms(self, terms: Terms, at: int) -> None:
        if not terms.certify_like(self.terms):
            self.votes.carry_to(self.epoch, self.epoch + 1)
            self.epoch += 1
            self.terms_version = self.rollback_version
            terms = terms._replace(opened_at=at, first_epoch=self.epoch)
        self.terms = terms
        self.sources.limit(terms.source_daily_pages)

    def _items(self) -> list[str]:
        return list(dict.fromkeys([*self.look.base, *self.look.items]))

    def _undo(self, operation: int, at: int) -> None:
        self.rolled_back_at, self.operation, self.rollback_version = at, operation, self.version + 1

    def compare_again(self, operation: int, at: int, whole: bool) -> None:
        """Begin the comparison with the holdout again: the guardrail had stopped the context, or (whole) its tenant."""
        self.compared.restart(at, whole)
        self.operation = operation


def to_json(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
