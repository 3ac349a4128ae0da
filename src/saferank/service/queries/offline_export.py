"""The log of a store for which no service needs to be running."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO, cast, get_args

from saferank.errors import ArgumentError, UsageError, unknown, writing
from saferank.files import check_output_file, replacing
from saferank.service.clock import moment
from saferank.service.identifiers import to_text
from saferank.service.knowledge.arms import ARMS
from saferank.service.queries.export import export_lines
from saferank.service.wire.exports import Converter, ExportFormat
from saferank.store.contract import Store, StoreError, StoreUnavailableError
from saferank.store.opening import open_store
from saferank.store.record_columns import RecordColumns

DECISIONS = "obp"
FORMATS = (*get_args(ExportFormat), DECISIONS)


def export(store: str, form: str, tenant: str | None, out: Path | BinaryIO, arm: str | None = None) -> None:
    """Write the log of a store (a folder or postgresql://...) as lines of JSON to a file or an open one.

    A file is written atomically: it is complete, or the old one stays. Without ``tenant`` all tenants are written.
    Raises ``UsageError`` for an unknown form and for a store that cannot be read.
    """
    if form not in FORMATS:
        raise ArgumentError("format", unknown("format", form, FORMATS))
    if arm not in (None, *ARMS):
        raise ArgumentError("arm", f"unknown arm {arm!r}; known ones: {', '.join(ARMS)}")
    try:
        opened = open_store(store, readonly=True)
        if not isinstance(out, Path):
            asyncio.run(_copy(opened, form, tenant, out, arm))
            return
        check_output_file(out)
        with writing(out), replacing(out) as file:
            asyncio.run(_copy(opened, form, tenant, file, arm))
    except (StoreError, StoreUnavailableError) as problem:
        raise UsageError(str(problem)) from problem


async def _copy(store: Store, form: str, tenant: str | None, file: BinaryIO, arm: str | None) -> None:
    if form == DECISIONS:
        async for line in decision_lines(store, tenant):
            file.write(f"{line}\n".encode())
        return
    converter = Converter(cast(Any, form), moment(round(1000 * time.time())), arm)
    async for facts in stored_lines(store, tenant):
        file.writelines(f"{line}\n".encode() for line in converter.take(facts))


async def decision_lines(store: Store, tenant: str | None) -> AsyncIterator[str]:
    """The decisions of all closed pages (``propensities.py``), in the order of time."""
    from saferank.service.queries.propensities import decisions_of

    await store.open()
    try:
        names = {row.id: row.name for row in await store.contexts() if tenant in (None, row.tenant)}
        now = round(1000 * time.time())
        async for pages in store.all_pages():
            records = RecordColumns([page.record for page in pages])
            records.check()
            for number, page in enumerate(pages):
                record = records.record(number)
                if page.context not in names or record.closes_at > now:
                    continue
                about = {"timestamp": moment(record.issued_at), "impression_id": to_text(record.impression)}
                for each in decisions_of(record):
                    facts = {
                        **about, "context": names[page.context], "position": each.place + 1, "item_id": each.item,
                        "other_item_id": each.other,
                        "other_position": None if each.other_place is None else each.other_place + 1,
                        "click": page.clicks >> each.place & 1, "propensity_score": each.propensity,
                    }  # fmt: skip
                    yield json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    finally:
        await store.close()


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
