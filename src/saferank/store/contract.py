"""What the service asks of a store. SQLite and PostgreSQL keep it alike; one test suite runs over both.

Times are milliseconds of the store's clock. A *page* belongs to one context and is issued at a time that its id begins
with, so the order of ids is the display order. A page is *open* until its context was closed through its issue time,
and no longer than its window by the store's clock. Clicks are merged into open pages only. Closing and feedback exclude
each other per context: when ``close_through`` has returned, no click of an earlier page is accepted any more.

Contexts are spread over ``SHARDS`` shards. Who holds the lease of a shard closes and folds its contexts. Every lease
has an epoch; a write under an epoch that is no longer the newest is refused (``StaleLeaseError``). A *publication* is
the knowledge of a context, the fold of all its pages through a time.
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

SHARDS = 64
"""Context number ``id`` belongs to shard ``id % SHARDS``."""

SCHEMA_VERSION = 12
"""Of the tables of both stores. A store of another version is refused."""


class StoreError(ValueError):
    """Why a store cannot be used, in a sentence that begins with its name. Raised before anything is served."""


class DamagedStoreError(StoreError):
    """The store is not as it was written; the sentence names what is wrong. Any call that reads may raise this."""


class StoreUnavailableError(RuntimeError):
    """The store did not take a call (disk full, connection lost): nothing of it is acknowledged; try again."""


class StaleLeaseError(RuntimeError):
    """Somebody else holds the shard by now; nothing was written."""


class ContextRow(NamedTuple):
    """A context. Opened once, by the first caller."""

    id: int
    tenant: str
    name: str
    terms: str  # JSON: policy, rule, window, lifetime, time of opening
    opened_at: int


CATALOGUE_MS = 86_400_000
"""Who issues pages of a catalogue writes it again after so long: the store knows when it was used last."""


FINAL_MS = 15_000
"""After the end of a window, what was accepted in it is committed after so long: more than any statement may take."""


class CatalogueRow(NamedTuple):
    """A base ranking and candidates, packed, by digest of their content."""

    digest: bytes
    body: bytes


class PageRow(NamedTuple):
    """A page as the log keeps it."""

    impression: bytes  # 16 bytes, the first six are the time of issue
    context: int
    closes_at: int
    record: bytes  # packed PageRecord
    clicks: int = 0  # a bit for each shown place


class ClickReport(NamedTuple):
    """Clicks of a page, with the page itself: a page with clicks is in the log because its token carries it."""

    page: PageRow  # its clicks are those that were reported
    tenant: str
    event_id: str | None  # belongs to the page

    @property
    def digest(self) -> bytes:
        """What two reports of a page with one event_id must have in common."""
        return self.page.clicks.to_bytes(16, "little")


MOST_EVENT_IDS = 64
"""Event ids that are kept of a page. Further reports with new ones are taken like reports without, unless they bring a
click: so one token cannot fill the store."""


class Outcome(IntEnum):
    """What became of a report. An event_id is looked up first, so a repeated one is found after the closing too."""

    ACCEPTED = 1  # merged, and at least one click or the page itself is new, or it has a new event_id that is kept
    DUPLICATE = 2  # everything in it was there before
    LATE = 3  # the page is closed: nothing was written
    CONFLICT = 4  # the event_id came before with another digest: nothing was written


class Group(NamedTuple):
    """What is written in one transaction (group commit)."""

    reports: Sequence[ClickReport] = ()
    pages: Sequence[PageRow] = ()  # issued pages, written in the background; those that are closed already are left out
    catalogues: Sequence[CatalogueRow] = ()


class Written(NamedTuple):
    """What became of a group."""

    outcomes: tuple[Outcome, ...]  # one for each report
    now: int  # the store's clock
    left_out: int  # pages of the group that came after their window was closed


class Lease(NamedTuple):
    """The right to close and fold the contexts of a shard."""

    shard: int
    epoch: int
    until: int  # the store's clock; renewed by every heartbeat


class VersionRow(NamedTuple):
    """A version of the knowledge of a context: its leader then, and what brought it about."""

    context: int
    version: int
    at: int  # issue time of the page, or the time, that brought it about
    cause: str  # opened, page, expired, contradiction, restart, rollback or reset
    leader: str  # JSON list
    impression: bytes | None
    evidence: str  # JSON: certificates gained and lost, as lists of [better, worse, s, n]
    why: str | None = None


class Publication(NamedTuple):
    """The knowledge of a context: the fold of its pages through ``through``, and of its operations so far."""

    context: int
    number: int  # grows by one with every publication of the context
    through: int
    operation: int  # the newest operation that is in it
    body: bytes  # ends with its CRC-32


class Snapshot(NamedTuple):
    """A kept snapshot without its body."""

    number: int
    through: int
    operation: int


class Deleted(NamedTuple):
    """What ``delete_pages`` has deleted."""

    pages: int
    events: int


ALL_TENANTS = ""
"""Instead of a tenant's name: all tenants. No tenant can be called so."""


class OperationKind(IntEnum):
    """What is done to a context or (context 0) to a whole tenant, by an operator, the guardrail or a start.

    Numbers are in stores: keep them.
    """

    KILL = 1
    UNKILL = 2
    ROLLBACK = 3
    GUARDRAIL = 4
    SETTINGS = 5
    RESET = 6
    RELEASE = 7  # a server was started with another version, policy or rule than the one before it
    TRAFFIC = 8  # the share of a tenant's visitors whose pages the policy may choose
    KEYS = 9  # the keys that sign tokens have changed: servers read them again before they acknowledge it
    FORGET = 10  # pages of a visitor are deleted by the holders of the shards


class OperationRow(NamedTuple):
    """Something an operator did, or the guardrail.

    KILL, UNKILL, SETTINGS, TRAFFIC and GUARDRAIL hold at once; GUARDRAIL is obeyed like KILL and ended by UNKILL. The
    holder of the shard carries out ROLLBACK and RESET, and begins comparisons again after an UNKILL that ended a
    GUARDRAIL.
    """

    number: int  # grows over all operations of the store, one after the other (taken under a lock)
    at: int
    tenant: str  # ALL_TENANTS: all tenants
    context: int  # 0: all contexts of the tenant
    kind: int
    body: str  # JSON: why, version, mode and holdout_share, evidence of the guardrail


class ServerRow(NamedTuple):
    """A server as the others see it."""

    server: str
    lease_until: int  # after this it serves production's rankings only, until it has been heard from again
    acknowledged: int  # the newest operation that it obeys


class AlarmRow(NamedTuple):
    """Something that should not happen."""

    at: int
    context: int
    kind: str
    detail: str


class HeartbeatReply(NamedTuple):
    """What a server learns from a heartbeat."""

    now: int  # the store's clock
    lease_until: int  # of the server's freshness: ``now`` plus the time asked for
    operations: int  # the newest operation there is
    leases: tuple[Lease, ...]  # shards that this server holds from now on, or still
    servers: int  # servers that are alive, this one included


class Store(Protocol):
    """The contract. All calls raise StoreUnavailableError when the store does not answer; then nothing was promised."""

    is_remote: bool
    """Its clock is another machine's, which may be wrong where this one's is right."""

    async def open(self) -> None:
        """Connect, and make the tables of a new store; StoreError says why it cannot be used.

        After a crash a SQLite store is checked first. PostgreSQL recovers by itself.
        """

    async def close(self) -> None:
        """Let go of everything."""

    # --- servers, time, leases ---

    async def heartbeat(self, server: str, acknowledged: int, lease_ms: int) -> HeartbeatReply:
        """Say that a server is alive and obeys operations up to ``acknowledged``.

        It keeps its shards, takes free ones up to its fair share (SHARDS over live servers, rounded up), and lets go of
        what is beyond. A shard whose lease has run out is free; taking one raises its epoch.
        """

    async def leave(self, server: str) -> None:
        """The server has stopped: its shards are free, and no server waits for its acknowledgement."""

    async def servers(self, ended_ms: int = 0) -> Sequence[ServerRow]:
        """All servers whose lease has not run out, or ended less than so long ago."""

    # --- contexts and catalogues ---

    async def open_context(self, tenant: str, name: str, terms: str, most: int) -> ContextRow | None:
        """The context of this name, made if there is none; None when the tenant has ``most`` already."""

    async def find_context(self, tenant: str, name: str) -> ContextRow | None:
        """A context by name."""

    async def context(self, number: int) -> ContextRow | None:
        """A context by number."""

    async def contexts(self) -> Sequence[ContextRow]:
        """All contexts, by id."""

    async def catalogue(self, digest: bytes) -> bytes | None:
        """The body of a catalogue."""

    # --- pages ---

    async def write(self, group: Group) -> Written:
        """Write a group, all of it or nothing; when this returns it is durable."""

    async def page(self, impression: bytes) -> PageRow | None:
        """A page."""

    # --- closing and publishing, by the holder of a shard ---

    async def due(self, shards: Sequence[int], after: int, now: int) -> Sequence[int]:
        """Contexts of these shards with pages issued after ``after`` whose windows have ended at ``now``.

        Pages that are in the newest publication of their context do not count. So a holder that stopped between
        ``close_through`` and ``publish`` leaves a context that is due for the next one.
        """

    async def close_through(self, lease: Lease, context: int, through: int) -> int:
        """Close the pages issued at or before ``through``; returns what the context is closed through now."""

    async def pages_between(self, context: int, after: int, through: int) -> Sequence[PageRow]:
        """Pages issued after ``after`` and at or before ``through``, in display order."""

    async def count_pages(self, context: int, after: int) -> int:
        """How many pages were issued after ``after``."""

    async def publish(
        self,
        lease: Lease,
        publication: Publication,
        versions: Sequence[VersionRow],
        alarms: Sequence[AlarmRow] = (),
        keep: bool = False,
    ) -> None:
        """Make knowledge known to all servers, with its new versions; ``keep`` keeps it as a permanent snapshot.

        A publication that is the newest one already, field by field, is a call that came twice: nothing is written.
        Any other whose number is not the next one is refused (StaleLeaseError).
        """

    async def publication(self, context: int) -> Publication | None:
        """The newest knowledge of a context."""

    async def publications(self, contexts: Sequence[int]) -> Sequence[Publication]:
        """The newest knowledge of these contexts in one question, by context; those without any are left out."""

    async def published(self, since: int) -> Mapping[int, int]:
        """Contexts that were published at or after ``since`` (and some before), with the numbers of publications.

        ``since`` is a time that the store gave before the last call of this: then no publication is missed.
        """

    async def wait(self, seconds: float) -> None:
        """Return when something was published or an operation was added, or after ``seconds``. May return early.

        What happened between two calls ends the second one at once. One task of a server may wait.
        """

    # --- retention ---

    async def contexts_with_pages_before(self, shards: Sequence[int], before: int) -> Sequence[int]:
        """Contexts of these shards with pages issued before a time."""

    async def keep_publication(self, lease: Lease, context: int) -> None:
        """Keep the newest publication as a snapshot as well, if there is one."""

    async def prune(self, lease: Lease, context: int, snapshot: Snapshot, before: int, seen: int, most: int) -> int:
        """Delete pages issued before a time, at most a number of them, the oldest first; returns how many.

        From then on a kept snapshot stands for what was before it: older ones are deleted. Nothing is done, and 0 is
        returned, when the context has an operation beyond ``seen``: it may be a rollback that needs what is deleted.
        """

    async def delete_pages(
        self, lease: Lease, context: int, snapshot: Snapshot, impressions: Sequence[bytes]
    ) -> Deleted:
        """Delete single pages of a context, and the event ids of their reports.

        As with ``prune`` a kept snapshot stands for what was before it from then on, and older ones are deleted. Pages
        issued after the snapshot are left alone.
        """

    async def pruned_through(self, context: int) -> int:
        """Through when pages may have been deleted, for which the oldest kept snapshot stands; 0: none were."""

    async def prune_events(self, before: int, most: int) -> int:
        """Forget event ids that were accepted before a time, at most a number of them; returns how many."""

    async def prune_catalogues(self, before: int, most: int) -> int:
        """Delete catalogues that were last written before a time, at most a number of them; returns how many.

        Those that a context was opened with stay, and those that a page names. Such a page was issued within twice
        ``CATALOGUE_MS`` after the catalogue was written last, so younger pages are not looked at.
        """

    # --- operations ---

    async def add_operation(self, tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
        """Write an operation; it is durable when this returns."""

    async def operations(self, after: int) -> Sequence[OperationRow]:
        """Operations with larger numbers, in order."""

    async def add_alarm(self, alarm: AlarmRow) -> None:
        """Note something that should not happen."""

    # --- the past ---

    async def versions(self, context: int, newest: int | None = None) -> Sequence[VersionRow]:
        """All versions of a context, oldest first; or a number of the newest."""

    async def snapshots(self, context: int) -> Sequence[Publication]:
        """All kept snapshots of a context, oldest first."""

    async def snapshot_heads(self, context: int) -> Sequence[Snapshot]:
        """All kept snapshots of a context, oldest first, without their bodies."""

    def all_pages(self, context: int | None = None, after: bytes = b"") -> AsyncIterator[Sequence[PageRow]]:
        """Pages in display order, of one context or of all, from after an id, some at a time."""

    async def newest_alarms(self, most: int) -> Sequence[AlarmRow]:
        """Alarms of all contexts, newest first, at most a number of them."""

    async def damage(self) -> Sequence[str]:
        """What the database's own check finds wrong, in sentences. It reads all of a SQLite file."""

    async def meta(self, name: str) -> bytes | None:
        """A fact about the store: ``session_key`` and ``token_keys`` are made when it is."""

    async def put_meta(self, name: str, value: bytes) -> None:
        """Set a fact about the store; it is durable when this returns."""


RESTORED = "restored"
"""The fact about a store that says when it was made from a backup."""

CHUNK = 1000
"""Rows that are read in one go, of pages and of what is copied."""

COPIED = (
    "meta",
    "context",
    "catalogue",
    "page",
    "delivery",
    "publication",
    "snapshot",
    "version",
    "operation",
    "alarm",
)
"""The tables that a copy holds, in the order in which they are written. Servers, leases and waiting contexts are of the
moment: they are left out."""


class Chunk(NamedTuple):
    """Some rows of a table: tuples of numbers, texts, bytes and None, the same for both kinds of stores."""

    table: str
    rows: list[tuple[Any, ...]]


class CopiedStore(Store, Protocol):
    """A store whose whole content can be taken out and put in."""

    name: str

    def dump(self) -> AsyncIterator[Chunk]:
        """All rows of the tables ``COPIED`` as of one moment, in their order; servers may keep writing."""

    async def fill(self, chunks: AsyncIterable[Chunk]) -> None:
        """Write all rows, or none; StoreError unless the store is empty and no server uses it."""
