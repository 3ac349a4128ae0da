"""Was a page legal when it was shown? The check before serving, made again from the log.

A replay notes the certificates of every version as it comes to it. An explored page names its version, its call's
catalogue and production's page; with those ``checked`` decides as it did when the page was served.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

import numpy as np

from saferank.service.knowledge.catalogues import Catalogue, items_of
from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.page_check import CheckedCall, checked, proven_legal
from saferank.store.contract import VersionRow
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import RecordColumns
from saferank.verbs import Ints

ALL_UNTIL = 20_000
"""So many pages are checked one and all, those after them by chance."""

_KEPT = 100_000
"""Verdicts that are remembered."""


_CALLS = 1000
"""Calls that are remembered."""


class CertificatesAtVersion(NamedTuple):
    """What was certain at a version."""

    certified: Certified
    number_of: dict[str, int]


NOTHING = CertificatesAtVersion(Certified(), {})


class Legality:
    """The check of explored pages of one context; one in ``every`` after the first ``ALL_UNTIL`` (0: none)."""

    def __init__(self, every: int, catalogue: Callable[[bytes], Awaitable[Catalogue | None]]) -> None:
        self._every, self._catalogue = every, catalogue
        self._versions: dict[int, CertificatesAtVersion] = {}
        self._expired: set[int] = set()
        self._calls: dict[tuple[int, bytes, int], tuple[CheckedCall, dict[str, int]]] = {}
        self._verdicts: dict[tuple[int, bytes, tuple[str, ...]], str | None] = {}
        self.checked = 0

    def note(self, row: VersionRow, fold: Fold) -> None:
        """A version was made: keep its certificates."""
        if row.cause == "expired":
            self._expired.add(row.version)
        known = fold.knowledge  # numbers of items are never used again
        self._versions[row.version] = CertificatesAtVersion(known.certified, known.index)

    async def first_fault(self, records: RecordColumns) -> tuple[int, str] | None:
        """The first of explored pages that was illegal, and why; None when all were legal or are not looked at."""
        looked = await self._looked_at(records)
        self.checked += len(looked)
        doubtful: list[int] = []
        for (version, digest, k), numbers in _alike(records, looked).items():
            doubtful += await self._not_proven(version, digest, k, records.select(numbers), numbers)
        for number in sorted(doubtful):
            fault = await self._fault(records.record(number))
            if fault is not None:
                return number, fault
        return None

    async def _looked_at(self, records: RecordColumns) -> Ints:
        """Which pages are looked at, of those whose catalogue and version are known.

        Catalogues are written in the background: a crash may have taken one.
        """
        digests = records.field("catalogue").tolist()
        missing = [digest for digest in set(digests) if await self._catalogue(digest) is None]
        known = np.isin(records.column("knowledge"), list(self._versions))
        if missing:
            known &= np.array([digest not in missing for digest in digests], np.bool_)
        if self._every <= 1:
            return np.flatnonzero(known & (self._every > 0))
        early = self.checked + np.cumsum(known) <= ALL_UNTIL
        return np.flatnonzero(known & (early | (records.last_of_ids % self._every == 0)))

    async def _not_proven(
        self, version: int, digest: bytes, k: int, records: RecordColumns, numbers: Ints
    ) -> list[int]:
        """Those of pages of one version, catalogue and size that are not proven legal all at once."""
        lists = await self._catalogue(digest)
        assert lists is not None
        call, index = self._call(version, digest, k, lists)
        own = (records.production(index, k) == np.array(call.base)).all(axis=1)
        proven = own & proven_legal(call, records.shown(index, k))
        return [int(number) for number in numbers[~proven]]

    def _call(self, version: int, digest: bytes, k: int, lists: Catalogue) -> tuple[CheckedCall, dict[str, int]]:
        """What pages of a version, catalogue and size are checked with first."""
        key = (version, digest, k)
        if key not in self._calls:
            if len(self._calls) >= _CALLS:
                self._calls.clear()
            self._calls[key] = _call_of(self._versions[version], lists, k)
        return self._calls[key]

    async def _fault(self, record: PageRecord) -> str | None:
        """Why an explored page was illegal; None when it was legal."""
        lists = await self._catalogue(record.catalogue)
        assert lists is not None
        key = (record.knowledge, record.catalogue, record.shown)
        if key not in self._verdicts:
            if len(self._verdicts) >= _KEPT:
                self._verdicts.clear()
            self._verdicts[key] = self._verdict(record, lists)
        return self._verdicts[key]

    def _verdict(self, record: PageRecord, lists: Catalogue) -> str | None:
        """A page is legal when one of the sets of certificates that its server may have held allows it."""
        if tuple(lists[0][: record.k]) != record.production:
            return "it names another page as production's than its call did"
        faults = []
        for known in self._held(record):
            call, index = _call_of(known, lists, record.k)
            fault = checked(call, [index.get(item, -1) for item in record.shown]).fault
            if fault is None:
                return None
            faults.append(fault)
        return faults[0]

    def _held(self, record: PageRecord) -> Iterator[CertificatesAtVersion]:
        """Those of its version, without what had ended and was not yet published, and none at all."""
        version = record.knowledge
        yield self._versions[version]
        while version + 1 in self._expired:
            version += 1
            yield self._versions[version]
        yield NOTHING  # fewer certificates allow fewer pages


def _call_of(known: CertificatesAtVersion, lists: Catalogue, k: int) -> tuple[CheckedCall, dict[str, int]]:
    """A call as the check knows it, and the numbers of its items."""
    items = items_of(lists)
    index = dict(known.number_of)
    for item in items:
        index.setdefault(item, len(index))
    present = sum(1 << index[item] for item in items)
    return CheckedCall(tuple(index[item] for item in lists[0][:k]), present, known.certified), index


def _alike(records: RecordColumns, numbers: Ints) -> dict[tuple[int, bytes, int], Ints]:
    """Pages of one version, catalogue and size, together."""
    columns = [records.field(name)[numbers] for name in ("knowledge", "catalogue", "k")]
    if len(numbers) and all((column == column[0]).all() for column in columns):
        version, digest, k = (column[:1].tolist()[0] for column in columns)
        return {(version, digest, k): numbers}
    together: dict[tuple[int, bytes, int], list[int]] = {}
    for number, *key in zip(numbers.tolist(), *(column.tolist() for column in columns), strict=True):
        together.setdefault((key[0], key[1], key[2]), []).append(number)
    return {key: np.array(mine) for key, mine in together.items()}
