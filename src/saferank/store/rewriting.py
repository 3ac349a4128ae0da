"""What only a deletion may do to a store: change rows of the past. No server may be using the store."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from saferank.store.contract import CatalogueRow, ContextRow, Lease, Publication, Store, VersionRow


class RewritableStore(Store, Protocol):
    """A store that an item can be deleted from."""

    def all_catalogues(self) -> AsyncIterator[CatalogueRow]:
        """All catalogues, by digest."""

    async def delete_catalogues(self, digests: Sequence[bytes]) -> int:
        """Delete catalogues, whoever names them; returns how many there were."""

    async def rewrite(
        self,
        lease: Lease,
        row: ContextRow,
        publication: Publication | None,
        versions: Sequence[VersionRow],
        alarms: Mapping[str, str],
    ) -> None:
        """Replace the terms of a context, its knowledge, some versions and details of alarms; all of it or nothing.

        The publication, whose number must be the next one (StaleLeaseError), becomes the only snapshot, and the log of
        the context begins with it. ``versions`` are new ones and others instead of those of the same number;
        ``alarms`` has new details by old ones.
        """

    async def scrub(self) -> None:
        """Write the files again without what was deleted. It takes its time, and nobody else may use the store."""
