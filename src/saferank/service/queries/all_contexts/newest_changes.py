"""The newest changes of leaders that clicks decided, over all contexts, without asking about every context."""

from collections.abc import Sequence

from saferank.service.queries.all_contexts.standings import Standing
from saferank.service.queries.leaders import leader_change
from saferank.service.wire.effect_views import ContextChangeView
from saferank.store.contract import ContextRow, Store, VersionRow

_MOST_ASKED = 100
"""Contexts whose versions are read for one answer; what was read is kept, so the next answer comes further."""

BY_CLICKS = "page"
"""The cause of a version that the clicks of a page decided."""


class NewestChanges:
    """Versions of contexts, read when the context has come to a new one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[int, tuple[int, list[VersionRow]]] = {}  # by context: its version then, the newest by clicks

    async def newest(self, contexts: Sequence[tuple[ContextRow, Standing]], most: int) -> list[ContextChangeView]:
        """Newest first.

        No version of a context is newer than its last change. So contexts are taken by their last change, and when
        there are enough versions that are not older than the last change of the next context, no other can be newer.
        """
        found: list[tuple[VersionRow, str]] = []
        asked = 0
        for row, standing in sorted(contexts, key=lambda entry: -entry[1].changed_at):
            if len(found) >= most and found[most - 1][0].at >= standing.changed_at:
                break
            if standing.version <= 1:
                continue
            if self._read.get(row.id, (0, []))[0] != standing.version and asked < _MOST_ASKED:
                asked += 1
                await self._ask(row.id, most)
            found += [(version, row.name) for version in self._read.get(row.id, (0, []))[1]]
            found.sort(key=lambda entry: -entry[0].at)
            del found[most:]
        return [ContextChangeView(context=name, change=leader_change(version)) for version, name in found]

    async def _ask(self, context: int, most: int) -> None:
        versions = await self._store.versions(context, most)
        newest = versions[-1].version if versions else 0
        self._read[context] = (newest, [version for version in versions if version.cause == BY_CLICKS])
