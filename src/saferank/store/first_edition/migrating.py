"""A store of the first edition becomes one of the second: contexts, pages with their clicks, event ids, switches.

The first server that opens the new store folds the pages into knowledge; versions begin again at 1.
"""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from saferank.store.contract import Group, OperationKind, StoreError
from saferank.store.first_edition.reading import OldStore, read_store
from saferank.store.past import LoadableStore, Past

_CHUNK = 2000

T = TypeVar("T")


class Migrated(NamedTuple):
    """What was taken over."""

    contexts: int
    pages: int
    clicked: int
    events: int
    switches: int
    versions: int

    def sentences(self) -> list[str]:
        """For people."""
        return [
            f"{self.contexts} contexts, {self.pages} pages ({self.clicked} with clicks), {self.events} event ids and "
            f"{self.switches} kill switches were taken over",
            f"the {self.versions} versions of leaders stay in the old store only: the first server that is started on "
            "the new one folds the pages again, and counts versions from 1",
            "tokens that the first edition gave are not accepted; clicks by impression_id are",
        ]


async def migrate(old: Path, new: LoadableStore) -> Migrated:
    """Convert a store into an empty one; StoreError says why not. The old one is not changed."""
    past = read_store(old)
    await new.open()
    try:
        if await new.contexts():
            raise StoreError(f"{new.name}: is not empty; name another store")
        return await _moved(past, new)
    finally:
        await new.close()


async def _moved(past: OldStore, new: LoadableStore) -> Migrated:
    numbers = itertools.count(1)
    contexts = [context.row() for context in past.contexts]
    pages = [page for context in past.contexts for page in context.rows(lambda: next(numbers))]
    for catalogues in _chunks(past.catalogues):
        await new.write(Group(catalogues=catalogues))
    await new.load(Past(contexts=contexts))
    for chunk in _chunks(sorted(pages)):
        await new.load(Past(pages=chunk))
    for deliveries in _chunks(past.deliveries):
        await new.load(Past(deliveries=deliveries))
    for alarm in past.alarms:
        await new.add_alarm(alarm)
    switches = await _switch(past, new)
    await new.load(Past(meta=[("session_key", past.session_key)]))
    clicked = sum(page.clicks > 0 for page in pages)
    return Migrated(len(contexts), len(pages), clicked, len(past.deliveries), switches, past.versions)


async def _switch(past: OldStore, new: LoadableStore) -> int:
    """Switches that are on stay on."""
    on = [(context.tenant, context.number, context.killed) for context in past.contexts if context.killed]
    on += [(tenant, 0, why) for tenant, why in past.killed_tenants.items() if why]
    for tenant, number, why in on:
        await new.add_operation(tenant, number, OperationKind.KILL, json.dumps({"why": why}, ensure_ascii=False))
    return len(on)


def _chunks(rows: Sequence[T]) -> list[Sequence[T]]:
    return [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
