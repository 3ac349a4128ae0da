"""The log of a store for which no service needs to be running."""

import json
from collections.abc import AsyncIterator
from typing import Any

from saferank.service.queries.export import export_lines
from saferank.store.contract import Store


async def stored_lines(store: Store, tenant: str | None = None) -> AsyncIterator[dict[str, Any]]:
    """Every line of the log as ``/v1/export`` gives it: those of one tenant, or of all tenants one after the other."""
    await store.open()
    try:
        rows = await store.contexts()
        for owner in sorted({row.tenant for row in rows} if tenant is None else {tenant}):
            async for line in export_lines(store, {row.id: row for row in rows if row.tenant == owner}, owner):
                yield json.loads(line)
    finally:
        await store.close()
