"""The book of events: which page an event id stands for, and what waits until the event is activated.

Callers choose event ids and send nothing else with a reward, so somebody must remember the page. The book is a SQLite
file beside the store. A commit survives the end of the process, not the loss of power (there is no fsync): what is
lost then is answered 404, and is never counted.
"""

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "personalizer.sqlite3"
GRACE_MS = 3_600_000
"""How long an event is remembered after its page closed: rewards that come then are answered like others."""
_TABLE = """
CREATE TABLE IF NOT EXISTS event (
    tenant TEXT, id TEXT, token TEXT, actions TEXT, digest BLOB, answer TEXT, active INTEGER, clicks TEXT,
    expires INTEGER, PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_expires ON event (expires);
"""
_FORGET_EVERY = 1000


class Event(NamedTuple):
    """A page that was asked for by an event id."""

    tenant: str
    id: str
    token: str
    actions: dict[str, str]  # by slot: the action that a reward of the slot is for
    digest: bytes  # of the question
    answer: str  # as it was given
    active: bool  # False: not shown yet, as far as we were told
    clicks: tuple[str, ...] = ()  # rewarded before it was active


class EventBook:
    """The events of all tenants."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None, check_same_thread=False)
        self._connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {_TABLE}")
        self._added = 0

    def find(self, tenant: str, event_id: str) -> Event | None:
        """The event, if it is known."""
        columns = "tenant, id, token, actions, digest, answer, active, clicks"
        query = f"SELECT {columns} FROM event WHERE tenant = ? AND id = ?"
        row = self._connection.execute(query, (tenant, event_id)).fetchone()
        if row is None:
            return None
        _, _, token, actions, digest, answer, active, clicks = row
        return Event(
            tenant, event_id, token, json.loads(actions), digest, answer, bool(active), tuple(json.loads(clicks))
        )

    def add(self, event: Event, closes_at: int, now: int) -> None:
        """Remember a new event, and now and then forget old ones."""
        self._added += 1
        if self._added % _FORGET_EVERY == 1:
            self._connection.execute("DELETE FROM event WHERE expires < ?", (now,))
        facts = (*event[:3], json.dumps(event.actions), *event[4:6], event.active, "[]", closes_at + GRACE_MS)
        self._connection.execute("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", facts)

    def hold(self, event: Event, clicks: tuple[str, ...]) -> None:
        """Keep clicks of an event that is not active; they are delivered when it is."""
        held = json.dumps([*event.clicks, *(item for item in clicks if item not in event.clicks)])
        where = "WHERE tenant = ? AND id = ? AND active = 0"
        self._connection.execute(f"UPDATE event SET clicks = ? {where}", (held, event.tenant, event.id))

    def activate(self, event: Event) -> bool:
        """Make an event active whose held clicks were delivered; False when others came meanwhile."""
        where = "WHERE tenant = ? AND id = ? AND clicks = ?"
        facts = (event.tenant, event.id, json.dumps(list(event.clicks)))
        return self._connection.execute(f"UPDATE event SET active = 1 {where}", facts).rowcount > 0

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
