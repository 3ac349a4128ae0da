"""The knowledge of a context as the fold of its closed pages in display order.

``Fold.fold(pages, through)`` is deterministic, and closings may cut the pages into batches as they like: every
decision depends on the pages alone and on the times at which they were issued. So a replay, another server, and one
that continues after a crash come to the same knowledge, the same versions and the same alarms.

A page names everything that the fold needs to know of it. Catalogues are not looked at: they are written in the
background and may come late or never.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from saferank.live.learner import Learner
from saferank.saved_state import bytes_in_use
from saferank.service.knowledge.arms import (
    ARMS,
    EXPLORE,
    SHADOW,
    ComparedArms,
    ShadowCounts,
    Sums,
    compared_arms,
    counted_pages,
    with_shadow_page,
)
from saferank.service.knowledge.certified import exchanged
from saferank.service.knowledge.knowledge import Changed, Knowledge, Terms
from saferank.service.knowledge.lessons import LessonPart, Lessons, Numbered, Room
from saferank.service.knowledge.view import Catalogue, items_of
from saferank.service.knowledge.visits import OrderWatch, SourceCounts, Visitors, Votes
from saferank.store.contract import AlarmRow, DamagedStoreError, PageRow, Publication, VersionRow
from saferank.store.page_record import CHECKSUM_SIZE, SOURCE, PageRecord, is_whole, issued_at
from saferank.store.record_columns import ARM, FLAGS, POLICY, SOURCE_KEY, ClosedPages
from saferank.verbs import Flags

_STEPS = 3
"""Epochs in a row that are begun one by one; after these nothing is left that could end."""


class NewestPage(NamedTuple):
    """Production's page and the items of the newest page: what a leader is derived from."""

    base: tuple[str, ...]
    items: tuple[str, ...]


def look_of(record: PageRecord) -> NewestPage:
    """What the leader of a page is derived from."""
    return NewestPage(record.production, record.row or record.production)


class Moment(NamedTuple):
    """What brings a version about: a time, and a page if it was one."""

    at: int
    impression: bytes | None = None


class Fold:
    """The knowledge of a context through a time; ``versions`` and ``alarm_rows`` are those since ``take_news``."""

    def __init__(self, context: int, terms: Terms, room: Room | None = None) -> None:
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
        self.visitors = Visitors()  # of the newest window with a counted page
        self.votes, self.sources, self.orders = Votes(), SourceCounts(terms.source_daily_pages), OrderWatch()
        self._numbered, self._room = Numbered(), room or Room()
        self.learnt = 0  # pages whose clicks were learnt
        self.checked = 0  # pages of the policy that were shown
        self.worst = 0  # the largest share of its allowance, in percent, that a page of the policy may have used
        self.compared = ComparedArms(1)  # served pages beside the holdout
        self.versions: list[VersionRow] = []
        self.alarm_rows: list[AlarmRow] = []
        self.version_made: Callable[[VersionRow], None] = self.versions.append

    @classmethod
    def opened(
        cls, context: int, terms: Terms, k: int, digest: bytes, lists: Catalogue, room: Room | None = None
    ) -> "Fold":
        """The fold of no pages: the context as its first call opened it."""
        fold = cls(context, terms, room)
        fold.catalogue, fold.compared = digest, ComparedArms.of_page_size(k)
        fold.look = NewestPage(tuple(lists[0][:k]), tuple(items_of(lists)))
        fold.knowledge = Knowledge(terms, k, items_of(fold.look))
        fold._new_version("opened", Moment(terms.opened_at))
        return fold

    @property
    def k(self) -> int:
        """The size of the newest page that was learnt."""
        return len(self.look.base)

    @property
    def pages(self) -> int:
        """Pages that are in it."""
        return sum([tally[0] for tally in self.tallies])

    def leader(self) -> tuple[str, ...]:
        """The leader that certified exchanges make of production's newest page."""
        look, index, certified = self.look, self.knowledge.index, self.knowledge.certified
        if not certified.pairs or not all(map(index.__contains__, look.base)):
            return look.base
        base = [index[item] for item in look.base]
        present = sum({1 << index[item] for item in (*look.base, *look.items) if item in index})
        return tuple(map(str, self.knowledge.learner.names(exchanged(certified, base, present).row)))

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
        closed.check()
        self.take(closed, through)

    def take(self, pages: ClosedPages, through: int) -> None:
        """The same, for pages whose records were read already."""
        for part in self._by_epoch(pages):
            self.turn_to(int(part.issued_at[0]))
            self._take(part)
        self.turn_to(through)
        self.through = max(self.through, through)

    def _by_epoch(self, pages: ClosedPages) -> Iterator[ClosedPages]:
        begin, times = 0, pages.issued_at
        while begin < len(times):
            epoch = self.terms.epoch_at(int(times[begin]))
            if self.terms.epoch_at(int(times[-1])) == epoch:
                yield pages if begin == 0 else pages.select(slice(begin, None))
                return
            end = int(np.searchsorted(times, self.terms.begin_of(epoch + 1)))
            yield pages.select(slice(begin, end))
            begin = end

    def recall(self, pages: Iterable[PageRow]) -> None:
        """Note the visitors of pages that are in the fold already, those of the newest window."""
        self.visitors.firsts(ClosedPages(list(pages)), self.rolled_back_at)

    def _take(self, pages: ClosedPages) -> None:
        """Take in pages of one epoch. Which page counts must not depend on its arm."""
        arms, counted = pages.column(ARM), self.visitors.firsts(pages, self.rolled_back_at)
        self._leave_out_capped(pages, counted)
        for run in self.compared.runs(pages.issued_at):
            self._count(pages.select(run), counted[run])
        for number in np.flatnonzero(arms == SHADOW).tolist() if SHADOW in arms else ():
            clicks = pages.row(number).clicks
            self.shadow = with_shadow_page(self.shadow, pages.record(number), clicks)
        mine = pages.has_text(POLICY, self.terms.policy)  # others' servers had not yet read of a reset
        self._learn(pages.select(np.flatnonzero(counted & (arms == EXPLORE) & mine)))
        self.catalogue = pages.select(slice(-1, None)).field("catalogue")[0]

    def _leave_out_capped(self, pages: ClosedPages, counted: Flags) -> None:
        """Pages of sources that have had all that count in a day do not count."""
        which = np.flatnonzero(counted & (pages.column(FLAGS) & SOURCE != 0))
        if len(which) and self.terms.source_daily_pages:
            sources, times = pages.column(SOURCE_KEY), pages.issued_at
            for number in which.tolist():
                counted[number] = self.sources.admits(sources[number].tobytes(), int(times[number]))

    def _count(self, pages: ClosedPages, counted: Flags) -> None:
        """Count pages of one bin, and compare those that a coin could have put into the holdout."""
        sums = Sums(np.array(self.tallies), np.array([self.worst, self.checked, 0, 0]))
        columns = counted_pages(pages, counted, sums)
        self.tallies, (self.worst, self.checked, illegal, clicked) = sums.tallies.tolist(), sums.facts.tolist()
        self.alarms["illegal_page"] += illegal
        self.compared.count_clicked(int(pages.issued_at[0]), clicked)
        tipped = self.compared.count(columns) if len(columns.share) else None
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
        if not len(run):
            return
        lessons, begin = Lessons(run, self.knowledge.index), 0
        self.learnt += int(np.count_nonzero(run.words[run.at].any(axis=1)))
        self.votes.turn_to(self.epoch)
        while begin < len(lessons):
            self._numbered.follow(self.knowledge.learner, self.orders)
            part = lessons.lay_out(begin, self._numbered, self.votes, self.orders, self._room)
            self._sound_orders(part, run)
            self._learn_part(part, lessons, run)
            begin = part.end
            if part.is_new:  # items after these get their numbers when it is their turn
                lessons.know(begin, self.knowledge.learner)
        self.look = look_of(lessons.record(-1))

    def _learn_part(self, part: LessonPart, lessons: Lessons, run: ClosedPages) -> None:
        knowledge = self.knowledge
        alarms = knowledge.alarms
        for number in knowledge.learn(part):
            page = run.row(number)
            moment = Moment(issued_at(page.impression), page.impression)
            self.look = look_of(lessons.record(number))
            lost = self._follow("page" if knowledge.alarms == alarms else "contradiction", moment)
            if lost:  # clicks that turn against what was likely, and not certain, are no alarm
                self._sound(knowledge.alarms - alarms, moment)
            if knowledge.contradicts_itself():
                self._new_version("contradiction", moment, ((), knowledge.begin_again()))
                self._sound(1, moment)
            alarms = knowledge.alarms

    def _sound_orders(self, part: LessonPart, run: ClosedPages) -> None:
        """An alarm for each item that does not stand on clicked pages where it was drawn to."""
        self.orders.name_new(self.knowledge.learner.items)
        won = part.room.won[: part.rows]
        for row, side in np.argwhere(won >= 0).tolist() if won.max(initial=-1) >= 0 else ():
            item = self.orders.names[won[row, side]]
            self.alarms["exchange_share"] += 1
            detail = f"on clicked pages {item!r} does not stand where it was drawn to: reports are chosen by order"
            at = issued_at(run.row(int(part.room.lesson[row])).impression)
            self.alarm_rows.append(AlarmRow(at, self.context, "exchange_share", detail))

    def _sound(self, new: int, moment: Moment) -> None:
        if new > 0:
            self.alarms["contradiction"] += new
            detail = "certificates contradicted each other; dropped"
            self.alarm_rows.append(AlarmRow(moment.at, self.context, "contradiction", detail))

    def _follow(self, cause: str, moment: Moment) -> bool:
        """Make a new version if the certificates have changed; True when some were lost."""
        gained, lost = self.knowledge.changed_certificates()
        if gained or lost:
            self._new_version(cause, moment, (gained, lost))
        return bool(lost)

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
        lost = self.knowledge.begin_again(self.k, items_of(self.look), self.terms)
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

    def _undo(self, operation: int, at: int) -> None:
        self.rolled_back_at, self.operation, self.rollback_version = at, operation, self.version + 1

    def compare_again(self, operation: int, at: int, whole: bool) -> None:
        """Begin the comparison with the holdout again: the guardrail had stopped the context, or (whole) its tenant."""
        self.compared.restart(at, whole)
        self.operation = operation


def to_json(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- a publication: a fold as bytes that end with their CRC-32 ---


_LENGTH = struct.Struct("<I")
_COPIED = (
    "version", "changed_at", "tallies", "rolled_back_at", "rollback_version", "alarms", "epoch",
    "learnt", "checked", "worst",
)  # fmt: skip


def pack(fold: Fold) -> bytes:
    """The body of a publication. Visitors are not in it: a server that continues reads the pages of the newest window.

    Votes and sources are: they go back further.
    """
    known = fold.knowledge
    learner = known.learner.save()
    marks, sources = fold.votes.marks.tobytes(), fold.sources.packed()
    facts = {
        "catalogue": fold.catalogue.hex(),
        "leader": fold.leader(),
        "look": fold.look,
        "race": known.race(),
        "knowledge": [known.epoch, known.pages, len(learner)],
        "compared": fold.compared.facts(),
        "shadow": fold.shadow,
        "votes": [fold.votes.epoch, fold.votes.level, len(marks)],
        "sources": [fold.sources.day, len(sources)],
        "watch": fold.orders.bets,
        "window": fold.visitors.window,
        **{name: getattr(fold, name) for name in _COPIED},
    }
    if fold.terms != fold.opened_terms:  # by a reset; otherwise they are those of the context's row
        facts["terms"], facts["terms_version"] = fold.terms._asdict(), fold.terms_version
    head = msgspec.json.encode(facts)
    body = b"".join((_LENGTH.pack(len(head)), head, learner, marks, sources))
    return body + _LENGTH.pack(zlib.crc32(body))


_OVERHEAD, _ITEM = 200_000, 1500
"""Bytes of a context beside its tables, and of an item, as measured."""


def memory_of(fold: Fold) -> int:
    """About how many bytes a fold takes in memory."""
    learner = fold.knowledge.learner
    return _OVERHEAD + bytes_in_use(learner.evidence) + _ITEM * len(learner.items) + fold.votes.table.slots.nbytes


def read_head(body: bytes) -> dict[str, Any]:
    """The facts of a publication, without its knowledge; DamagedStoreError unless it is as it was written."""
    if not is_whole(body):
        raise DamagedStoreError("a publication is damaged: its checksum is wrong. Restore the store from a backup")
    (length,) = _LENGTH.unpack_from(body)
    facts: dict[str, Any] = msgspec.json.decode(body[4 : 4 + length])
    return facts


def _parts(body: bytes, facts: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    """What follows the facts: the evidence, still packed, marks of votes and counts of sources."""
    begin = 4 + _LENGTH.unpack_from(body)[0]
    marks = begin + int(facts["knowledge"][-1])
    sources = marks + int(facts["votes"][-1])
    end = sources + int(facts["sources"][-1])
    if end + CHECKSUM_SIZE != len(body):
        raise ValueError("a publication is longer or shorter than it says")
    return body[begin:marks], body[marks:sources], body[sources:end]


def terms_in(head: dict[str, Any]) -> Terms | None:
    """The terms that a reset gave a context, by the facts of a publication; None: it has those of its row."""
    return Terms(**head["terms"]) if "terms" in head else None


def restored(
    publication: Publication, terms: Terms, room: Room | None = None, head: dict[str, Any] | None = None
) -> Fold:
    """The fold that was published; ``terms`` are those of the context's row, ``head`` the facts if they were read."""
    facts, fold = head or read_head(publication.body), Fold(publication.context, terms, room)
    fold.terms, fold.terms_version = terms_in(facts) or terms, facts.get("terms_version", 0)
    epoch, pages, _ = facts["knowledge"]
    learner, marks, sources = _parts(publication.body, facts)
    fold.knowledge = Knowledge.restored(fold.terms, epoch, pages, learner)
    base, items = map(tuple, facts["look"])
    fold.look = NewestPage(base, items)
    fold.catalogue, fold.compared = bytes.fromhex(facts["catalogue"]), compared_arms(facts["compared"])
    fold.shadow = ShadowCounts(*facts["shadow"])
    fold.through, fold.operation = publication.through, publication.operation
    for name in _COPIED:
        setattr(fold, name, facts[name])
    (epoch, level, _), (day, _) = facts["votes"], facts["sources"]
    fold.votes, fold.sources = Votes(epoch, level, marks), SourceCounts(fold.terms.source_daily_pages, day, sources)
    fold.orders, fold.visitors = OrderWatch(facts["watch"]), Visitors(facts["window"])
    return fold


def comparable(body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Equal for two bodies exactly when they hold the same knowledge."""
    facts = read_head(body)
    learner, *visits = _parts(body, facts)
    facts["knowledge"].pop()
    facts.pop("race")  # follows from the knowledge
    return facts, [Learner.load(learner).save(), *visits]


def differences(one: bytes, other: bytes) -> Sequence[str]:
    """The names of what differs in two bodies."""
    if one == other:
        return []
    (facts, parts), (others, other_parts) = comparable(one), comparable(other)
    names = [name for name, value in facts.items() if others.get(name) != value]
    return names or (["knowledge"] if parts != other_parts else [])
