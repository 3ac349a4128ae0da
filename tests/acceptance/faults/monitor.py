"""What an outside observer of a simulated run sees, and what must hold of it."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from saferank.store.contract import Outcome, PageRow, Publication
from tests.acceptance.faults.virtual_loop import VirtualLoop
from tests.store.memory import MemoryStore, issued_at


class BreachError(AssertionError):
    """Something that must never happen has happened."""


class Kill(NamedTuple):
    """A kill switch call that has returned; the newest operation of the store then."""

    context: int
    operation: int
    at: float


@dataclass
class Sent:
    """A report of a client, and the answers to its attempts."""

    page: PageRow
    clicks: int
    event_id: str | None
    answers: list[Outcome] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        return Outcome.ACCEPTED in self.answers or Outcome.DUPLICATE in self.answers


class Monitor:
    """Collects facts while a run goes on; a breach that can be seen at once fails at once."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.kills: list[Kill] = []
        self.unkilled: set[int] = set()  # contexts whose switch somebody has begun to end; it is not set again
        self.sent: list[Sent] = []
        self.history: dict[int, list[tuple[int, str]]] = {}  # by context: (number, digest) of its publications
        self.named: dict[tuple[str, int], int] = {}  # by server and context: the newest knowledge that a page named
        self.pages = self.explored = 0
        self.shown: dict[bytes, Any] = {}  # by impression: what a visitor keeps of a page

    # --- told by servers and the store ---

    def page_issued(self, server: str, row: PageRow, explored: bool, number: int, digest: str) -> None:
        self.pages += 1
        self.explored += explored
        if explored:
            self.explored_now(server, row.context)
        before = self.named.get((server, row.context), 0)
        self._must(number >= before, f"{server} went back from publication {before} to {number}")
        self.named[server, row.context] = number
        legal = number == 0 or (number, digest) in self.history[row.context]
        self._must(legal, f"{server} made a page of knowledge {number} {digest} that was never published")

    def _must(self, holds: bool, breach: str) -> None:
        """A breach ends the run at once; it is not an error of the server in whose call it is noticed."""
        if not holds:
            self.loop.errors.append(BreachError(breach))

    def explored_now(self, server: str, context: int) -> None:
        """A server issues an explored page, or would."""
        for kill in self.kills:
            late = (self.loop.time() - kill.at) * 1000
            holds = kill.context != context or context in self.unkilled
            self._must(holds, f"{server} issued an explored page {late:.1f} ms after the kill switch returned")

    def kill_returned(self, context: int, operation: int) -> None:
        self.kills.append(Kill(context, operation, self.loop.time()))

    def published(self, old: Publication | None, new: Publication, digest: str) -> None:
        self.history.setdefault(new.context, []).append((new.number, digest))
        if old is not None:
            forward = new.number > old.number and new.through >= old.through
            self._must(forward, f"publication {new.number} ({new.through}) replaced {old.number} ({old.through})")

    # --- at the end ---

    def check_end(self, store: MemoryStore) -> None:
        """Every window has ended and somebody has closed everything."""
        folds = {number: self._check_fold(store, number) for number in store.of_id}
        for sent in self.sent:
            self.check_sent(sent, folds[sent.page.context])

    def _check_fold(self, store: MemoryStore, context: int) -> dict[str, int]:
        """The newest publication is the fold of all pages through its time, each once, and nothing is left out."""
        publication = store.of_id[context].publication
        entries = [] if publication is None else json.loads(publication.body)
        through = 0 if publication is None else publication.through
        pages = sorted(page for page in store.pages.values() if page.context == context)
        replay = [[page.impression.hex(), page.clicks] for page in pages if issued_at(page.impression) <= through]
        _must(entries == replay, f"context {context}: a replay gives {replay}, published is {entries}")
        _must(len(replay) == len(pages), f"context {context}: {len(pages) - len(replay)} pages were never folded")
        return dict(entries)

    def check_sent(self, sent: Sent, fold: dict[str, int]) -> None:
        """What was acknowledged is counted; what was answered late is not."""
        name = sent.page.impression.hex()
        counted = fold.get(name, 0)
        if sent.acknowledged:
            missing = sent.clicks & ~counted
            _must(not missing, f"clicks {missing:b} of page {name} were acknowledged and are not counted")
        elif sent.event_id is not None and Outcome.LATE in sent.answers:
            others = [other.clicks for other in self.sent if other is not sent and other.page == sent.page]
            alone = sent.clicks & ~_union(others)
            _must(not alone & counted, f"clicks {alone & counted:b} of page {name} were answered late and are counted")


def _must(holds: bool, breach: str) -> None:
    if not holds:
        raise BreachError(breach)


def _union(bits: list[int]) -> int:
    union = 0
    for entry in bits:
        union |= entry
    return union
