"""Retention and deletion in PostgreSQL, by the holder of a shard."""

from collections.abc import Sequence

from saferank.store.contract import (
    CATALOGUE_MS,
    Deleted,
    Lease,
    Mark,
    StaleLeaseError,
)
from saferank.store.page_record import CATALOGUE_PLACE, first_id
from saferank.store.postgres.connections import Connection
from saferank.store.sql import statements


async def keep_publication(on: Connection, lease: Lease, context: int) -> None:
    """The newest publication becomes a snapshot as well."""
    async with on.transaction():
        await _fence(on, lease)
        await on.execute(statements("postgres")["keep_publication"], (context,))


async def prune(on: Connection, lease: Lease, context: int, mark: Mark, before: int, seen: int, most: int) -> int:
    """Delete the oldest pages of a context, which a kept snapshot stands for from now on."""
    sql = statements("postgres")
    async with on.transaction():
        await _fence(on, lease)
        await on.execute(sql["hold_operations"])  # who adds one afterwards sees what is deleted here
        if await (await on.execute(sql["newer_operation"], (context, seen))).fetchone():
            return 0
        await _stand_for(on, context, mark)
        return (await on.execute(sql["forget_pages"], (context, first_id(before), most))).rowcount


async def delete_pages(
    on: Connection, lease: Lease, context: int, mark: Mark, impressions: Sequence[bytes], digests: Sequence[bytes]
) -> Deleted:
    """Delete single pages, which a kept snapshot stands for from now on, and event ids by digest."""
    sql, behind = statements("postgres"), first_id(mark.through + 1)
    async with on.transaction():
        await _fence(on, lease)
        await _stand_for(on, context, mark)
        pages = await on.execute(sql["delete_pages"], (context, behind, list(impressions)))
        events = await on.execute(sql["delete_events"], (list(digests),))
        return Deleted(pages.rowcount, events.rowcount)


async def prune_catalogues(on: Connection, before: int, most: int) -> int:
    """Delete catalogues that were written last before a time and that nothing names."""
    behind = first_id(before + 2 * CATALOGUE_MS)
    facts = {"before": before, "behind": behind, "place": CATALOGUE_PLACE, "most": most}
    return (await on.execute(statements("postgres")["forget_catalogues"], facts)).rowcount


async def _stand_for(on: Connection, context: int, mark: Mark) -> None:
    """From now on the log of a context begins with a snapshot."""
    sql = statements("postgres")
    await on.execute(sql["set_pruned"], {"through": mark.through, "context": context})
    await on.execute(sql["forget_snapshots"], (context, mark.number))


async def _fence(on: Connection, lease: Lease) -> None:
    """StaleLeaseError unless the lease is the newest of its shard."""
    if not await (await on.execute(statements("postgres")["fence"], lease[:2])).fetchone():
        raise StaleLeaseError(f"the lease {lease.epoch} of shard {lease.shard} does not hold any more")
