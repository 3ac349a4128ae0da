"""Who holds which shard, in SQLite. The functions run inside a transaction of the writer."""

import sqlite3

from saferank.store.contract import SHARDS, Heartbeat, Lease, StaleLeaseError
from saferank.store.sql import statements

_FORGOTTEN_MS = 86_400_000


def heartbeat(connection: sqlite3.Connection, server: str, acknowledged: int, lease_ms: int, now: int) -> Heartbeat:
    """Renew what the server holds, let go of what is beyond its share, take free shards up to its share."""
    sql, until = statements("embedded"), now + lease_ms
    facts = {"server": server, "acknowledged": acknowledged, "now": now, "until": until}
    connection.execute(sql["set_server"], facts)
    connection.execute(sql["forget_servers"], (now - _FORGOTTEN_MS,))
    (alive,) = connection.execute(sql["count_servers"], (now,)).fetchone()
    share = -(-SHARDS // alive)
    connection.execute(sql["let_go"], {**facts, "share": share})
    held = connection.execute(sql["renew"], facts).rowcount
    connection.execute(sql["take"], {**facts, "free": share - held})
    leases = tuple(Lease(*row) for row in connection.execute(sql["leases"], (server, now)))
    (operation,) = connection.execute(sql["last_operation"]).fetchone()
    return Heartbeat(now, until, operation, leases, alive)


def leave(connection: sqlite3.Connection, server: str) -> None:
    """Free the shards of a server and forget it."""
    sql = statements("embedded")
    connection.execute(sql["leave_shards"], (server,))
    connection.execute(sql["leave"], (server,))


def fence(connection: sqlite3.Connection, lease: Lease, context: int) -> None:
    """StaleLeaseError unless the lease is the newest of the shard of a context."""
    row = connection.execute(statements("embedded")["epoch"], (lease.shard,)).fetchone()
    if context % SHARDS != lease.shard or row is None or row[0] != lease.epoch:
        raise StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold for context {context}")
