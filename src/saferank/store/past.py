"""What only a migration may do to a store: put rows of the past into it as they were."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from saferank.store.contract import ContextRow, PageRow, Store


class Past(NamedTuple):
    """Rows of another store. Windows of pages may have ended: they are folded by the next holder of their shard."""

    contexts: Sequence[ContextRow] = ()
    pages: Sequence[PageRow] = ()
    deliveries: Sequence[tuple[str, str, bytes]] = ()  # tenant, event_id, digest
    meta: Sequence[tuple[str, bytes]] = ()


class LoadableStore(Store, Protocol):
    """A store that can take the past over."""

    name: str

    async def load(self, past: Past) -> None:
        """Add rows as they are; no server may be using the store."""
