"""What the log is made of: numbered events, and the rows that are derived from them and written with them."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What happened. Numbers are in the files: never change one."""

    PAGE = 1  # a page was issued; body: service/pages.py
    CLICKS = 2  # clicks of a page arrived; body: a bit for each shown place
    OPENED = 3  # the first call of a context; JSON
    CATALOGUE = 4  # another base ranking or other candidates; body: digest of a catalogue
    CLOSED = 5  # every page of the context that was due at this time was closed
    KILL = 6  # production's ranking from now on (context 0: for a whole tenant); JSON
    UNKILL = 7
    ROLLBACK = 8  # back to an earlier leader; JSON
    FROZEN = 9  # certificates contradict each other; JSON
    ALARM = 10  # a page did not pass the serving check; JSON


ALL = 0
"""Stands where an event is about all contexts of a tenant."""


class Event(NamedTuple):
    """One line of the log."""

    seq: int
    kind: int
    context: int
    at: int
    impression: bytes | None
    body: bytes | None


class LeaderRow(NamedTuple):
    """A leader and what brought it about."""

    context: int
    version: int
    seq: int
    at: int
    cause: str  # opened, page, catalogue or rollback
    leader: str  # JSON list
    impression: bytes | None
    evidence: str  # JSON list of [better, worse, s, n]
    why: str | None


class Delivery(NamedTuple):
    """An event_id and what it said."""

    tenant: str
    event_id: str
    digest: bytes
    seq: int


class ContextRow(NamedTuple):
    """The number of a context."""

    id: int
    tenant: str
    name: str


class CatalogueRow(NamedTuple):
    """A base ranking and candidates, packed."""

    digest: bytes
    body: bytes


class SnapshotRow(NamedTuple):
    """A context as it was after event ``seq``."""

    context: int
    seq: int
    body: bytes


@dataclass
class Batch:
    """What is written in one transaction. Things that belong together are put into the same batch in one step."""

    events: list[Event] = field(default_factory=list)
    leaders: list[LeaderRow] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    contexts: list[ContextRow] = field(default_factory=list)
    catalogues: list[CatalogueRow] = field(default_factory=list)
    snapshots: list[SnapshotRow] = field(default_factory=list)
    clean: int | None = None  # all events up to it are in snapshots

    def __len__(self) -> int:
        return len(self.events) + len(self.snapshots)
