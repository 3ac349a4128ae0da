"""One context: what it has learnt, and its open pages. Changed by events alone, live and in a replay alike.

A context never decides anything: the service decides, writes an event, and has the context carry it out in the same
step. Whatever carrying it out brings about (a new leader, a contradiction) is told to the ``watcher``, who writes it
down when live and compares it with what was written in a replay.
"""

import bisect
import json
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

from saferank.folding import ISSUED, LEARNT
from saferank.learner import ContradictionError, Learner
from saferank.service.arms import ARMS
from saferank.service.learning import Evidence, Operation, as_pages, certificates_given, evidence
from saferank.service.pages import OpenPage
from saferank.store.events import LeaderRow


class Opening(NamedTuple):
    """What is fixed when a context is first used."""

    k: int
    policy: str
    rule: str
    window_ms: int


class Switch(NamedTuple):
    """A kill switch that is on."""

    since: int
    why: str


class Watcher(Protocol):
    """Who is told what carrying out an event brought about."""

    def leader_changed(self, row: LeaderRow) -> None:
        """A context has a new leader."""

    def frozen(self, context: "Context", at: int) -> None:
        """A context was frozen: its certificates contradict each other."""

    def folded(self, context: "Context", operations: Sequence[Operation]) -> None:
        """These operations are in the state; the leader had the same version before all of them."""


class Context:
    """A context and its open pages; ``open_pages`` is shared by all contexts, by impression."""

    def __init__(
        self,
        number: int,
        tenant: str,
        name: str,
        opening: Opening,
        learner: Learner,
        watcher: Watcher,
        open_pages: dict[bytes, OpenPage],
    ) -> None:
        self.number, self.tenant, self.name = number, tenant, name
        self.opening, self.k, self.window_ms = opening, opening.k, opening.window_ms
        self.learner, self.watcher, self.open_pages = learner, watcher, open_pages
        self.base: list[str] = []
        self.candidates: list[str] = []
        self.available: frozenset[str] = frozenset()
        self.version = 0
        self.changed_at = 0
        self.leader: tuple[str, ...] = ()
        self.certificates = certificates_given(learner)
        self.queue: deque[OpenPage] = deque()  # in order of issue
        self.sessions: dict[bytes, OpenPage] = {}
        self.requests: dict[str, OpenPage] = {}
        self.tallies = [[0, 0, 0] for _ in ARMS]  # closed pages, those with clicks, clicks
        self.pages = 0
        self.closed_to = 0  # pages that close at or before this time are closed
        self.rolled_back_at = 0  # pages issued until then are not counted ...
        self.rolled_back_seq = 0  # ... nor are those of events before this one
        self.killed: Switch | None = None
        self.contradiction: tuple[str, ...] | None = None
        self.alarms = {"illegal_page": 0, "contradiction": 0}
        self._operations: list[Operation] = []

    # --- what is known ---

    @property
    def items(self) -> list[str]:
        """Every item that was ever here, by number."""
        return cast(list[str], self.learner.items)

    @property
    def production(self) -> tuple[str, ...]:
        """Production's page by the newest catalogue."""
        return tuple(self.base[: self.k])

    @property
    def waiting(self) -> int:
        """How many operations are still to be carried out."""
        return len(self._operations)

    # --- pages ---

    def add_page(self, page: OpenPage, at: int, *, chosen: bool = False) -> None:
        """A page was issued; ``chosen``: by this very learner just now, which has counted it already."""
        self.keep_open(page)
        self.pages += 1
        if page.counted and not chosen:
            self._operations.append(Operation(ISSUED, page, page.seq, at))

    def keep_open(self, page: OpenPage) -> None:
        """Keep a page until it closes. A page re-created from its token goes where it was shown."""
        queue, closes_at = self.queue, page.closes_at
        if not queue or queue[-1].closes_at <= closes_at:
            queue.append(page)
        else:
            queue.insert(bisect.bisect_right(queue, closes_at, key=_closing), page)
        self.open_pages[page.id] = page
        session = page.session
        if session is not None and page.holds_session:
            held = self.sessions.get(session)
            if held is None or not held.counted:  # a page that comes back by its token takes no session from another
                self.sessions[session] = page
        if page.request_id is not None:
            self.requests[page.request_id] = page

    def close_due(self, seq: int, at: int) -> int:
        """Close the pages whose windows have ended, in the order in which they were shown; returns how many."""
        size, queue = len(self.queue), self.queue
        while queue and queue[0].closes_at <= at:
            self._close(queue.popleft(), seq, at)
        self.closed_to = max(self.closed_to, at)
        return size - len(queue)

    def _close(self, page: OpenPage, seq: int, at: int) -> None:
        del self.open_pages[page.id]
        if page.session is not None and self.sessions.get(page.session) is page:
            del self.sessions[page.session]
        if page.request_id is not None and self.requests.get(page.request_id) is page:
            del self.requests[page.request_id]
        tally = self.tallies[page.arm]
        tally[0] += 1
        tally[1] += page.clicks > 0
        tally[2] += page.clicks.bit_count()
        if page.counted and page.clicks:
            self._operations.append(Operation(LEARNT, page, seq, at))

    # --- learning ---

    def settle(self) -> None:
        """Carry out what is still to be learnt; nothing is learnt once a contradiction is found."""
        operations, self._operations = self._operations, []
        if not operations or self.contradiction is not None:
            return
        pages, first = as_pages(operations, self.k), 0
        while first < len(operations) and self.contradiction is None:
            following = self.learner.fold(pages, first)
            self.watcher.folded(self, operations[first:following])
            self._look(operations[following - 1])
            first = following

    def _look(self, newest: Operation) -> None:
        self.follow_leader("page", newest.seq, newest.at, self.leader, newest.page.id)
        given = certificates_given(self.learner)
        if given != self.certificates:
            self.certificates = given
            cycle = self.learner.contradiction()
            if cycle is not None:
                self.freeze(cast(tuple[str, ...], cycle), newest.at)

    def follow_leader(
        self, cause: str, seq: int, at: int, before: Sequence[str], impression: bytes | None = None
    ) -> None:
        """Make a new version when the learner has another leader; ``before`` is what the evidence explains."""
        leader = cast(tuple[str, ...], self.learner.leader())
        if leader != self.leader:
            self.leader = leader
            self.new_version(cause, seq, at, evidence(self.learner, before, leader), impression)

    def new_version(
        self, cause: str, seq: int, at: int, pairs: Evidence, impression: bytes | None = None, why: str | None = None
    ) -> None:
        """The present leader gets a number, and is told."""
        self.version += 1
        self.changed_at = at
        leader, reasons = _json(self.leader), _json(pairs)
        self.watcher.leader_changed(
            LeaderRow(self.number, self.version, seq, at, cause, leader, impression, reasons, why)
        )

    def freeze(self, cycle: tuple[str, ...], at: int) -> None:
        """Serve production's ranking from now on, because certificates contradict each other."""
        self.contradiction = cycle
        self.alarms["contradiction"] += 1
        self.watcher.frozen(self, at)

    # --- items come and go ---

    def rebase(self, base: list[str], candidates: list[str], seq: int, at: int) -> None:
        """Production's ranking and the candidates are these from now on."""
        self.settle()
        if self.contradiction is not None:
            return
        try:
            self.learner.rebase(base, candidates)
        except ContradictionError:
            self.set_catalogue(base, candidates)
            self.freeze(cast(tuple[str, ...], self.learner.contradiction() or ()), at)
            return
        self.set_catalogue(base, candidates)
        self.follow_leader("catalogue", seq, at, base[: self.k])

    def set_catalogue(self, base: list[str], candidates: list[str]) -> None:
        """Remember the lists of the newest call that changed them."""
        self.base, self.candidates = base, candidates
        self.available = frozenset(base).union(candidates)

    def roll_back(self, saved: "SavedContext", seq: int, at: int, why: str) -> None:
        """Be as at the moment at which an earlier leader came; open pages and everything learnt since are forgotten."""
        self._operations.clear()
        learner, later = Learner.load(saved.learner), self.items
        if len(learner.items) < len(later):  # items keep their numbers for ever: pages of the log refer to them
            learner.rebase(saved.base, [*saved.candidates, *later[len(learner.items) :]])
            learner.rebase(saved.base, saved.candidates)
        self.learner = learner  # whole: other threads look items up by their numbers
        self.set_catalogue(saved.base, saved.candidates)
        self.leader = cast(tuple[str, ...], self.learner.leader())
        self.certificates, self.contradiction = certificates_given(self.learner), None
        self.rolled_back_at, self.rolled_back_seq = at, seq
        for page in self.queue:
            page.counted = False
        self.sessions = {session: page for session, page in self.sessions.items() if page.holds_session}
        self.new_version("rollback", seq, at, [], why=why)


class SavedContext(NamedTuple):
    """What a rollback brings back."""

    learner: bytes
    base: list[str]
    candidates: list[str]


def why_frozen(cycle: Sequence[str] | None) -> str:
    """A contradiction in words."""
    chain = " above ".join([*cycle, cycle[0]]) if cycle else "the passes over the leader come to no end"
    return f"certificates contradict each other: {chain}; roll back to an earlier version"


def _closing(page: OpenPage) -> int:
    return page.closes_at


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
