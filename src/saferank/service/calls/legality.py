"""Was a page legal when it was shown? The check before serving, made again from the log.

A replay notes the certificates of every version as it comes to it. An explored page names its version, its call's
catalogue and production's page; with those ``checked`` decides as it did when the page was served.
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.page_check import CheckedCall, checked, proven_legal
from saferank.service.knowledge.view import Catalogue, items_of
from saferank.store.contract import VersionRow
from saferank.store.page_record import PageRecord, free_positions
from saferank.store.record_columns import KNOWLEDGE, LAST_OF_ID, K, RecordColumns
from saferank.verbs import Ints

ALL_UNTIL = 20_000
"""The first pages, up to this number, are all checked; those after them by chance."""

_CALLS = 1000
"""Calls that are remembered."""


class CertificatesAtVersion(NamedTuple):
    """What was certain at a version."""

    certified: Certified
    number_of: Mapping[str, int]


NOTHING = -1
"""Instead of a version: no certificates."""


class _Alike(NamedTuple):
    """What pages have in common that are checked together."""

    version: int
    catalogue: bytes
    k: int
    pins: int


class Legality:
    """The check of explored pages of one context; one in ``every`` after the first ``ALL_UNTIL`` (0: none)."""

    def __init__(self, every: int, catalogue: Callable[[bytes], Awaitable[Catalogue | None]]) -> None:
        self._every, self._catalogue = every, catalogue
        self._versions = {NOTHING: CertificatesAtVersion(Certified(), {})}
        self._expired: set[int] = set()
        self._calls: dict[_Alike, tuple[CheckedCall, dict[str, int]]] = {}
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
        for alike, numbers in _alike(records.select(looked), looked).items():
            doubtful += await self._not_proven(alike, records.select(np.array(numbers)), numbers)
        for number in sorted(doubtful):
            fault = await self._fault(records.record(number))
            if fault is not None:
                return number, fault
        return None

    async def _looked_at(self, records: RecordColumns) -> Ints:
        """Which pages are looked at, of those whose catalogue and version are known.

        Catalogues are written in the background: a crash may have taken one.
        """
        digests = records.field("catalogue")
        missing = [digest for digest in set(digests) if await self._catalogue(digest) is None]
        known = np.isin(records.column(KNOWLEDGE), list(self._versions))
        if missing:
            known &= np.array([digest not in missing for digest in digests], np.bool_)
        if self._every <= 1:
            return np.flatnonzero(known & (self._every > 0))
        early = self.checked + np.cumsum(known) <= ALL_UNTIL
        return np.flatnonzero(known & (early | (records.column(LAST_OF_ID) % self._every == 0)))

    async def _not_proven(self, alike: _Alike, records: RecordColumns, numbers: list[int]) -> list[int]:
        """Those of pages that are alike which are not proven legal all at once."""
        call, index, lists = await self._call(alike)
        own = (records.production(index, alike.k) == [index[item] for item in lists[0][: alike.k]]).all(axis=1)
        proven = own & proven_legal(call, records.shown(index, alike.k)[:, free_positions(alike.k, alike.pins)])
        return list(itertools.compress(numbers, ~proven))

    async def _fault(self, record: PageRecord) -> str | None:
        """Why an explored page was illegal; None when one of the sets of certificates that it may be of allows it."""
        faults = []
        for version in self._held(record.knowledge):
            call, index, lists = await self._call(_Alike(version, record.catalogue, record.k, record.pins))
            if tuple(lists[0][: record.k]) != record.production:
                return "it names another page as production's than its call did"
            page = [index.get(record.shown[position], -1) for position in free_positions(record.k, record.pins)]
            fault = checked(call, page).fault
            if fault is None:
                return None
            faults.append(fault)
        return faults[0]

    def _held(self, version: int) -> Iterator[int]:
        """The version that a page names, those without what had ended and was not yet published, and no certificates.

        One of these sets is that which its server held. Fewer certificates allow fewer pages.
        """
        yield version
        while version + 1 in self._expired:
            version += 1
            yield version
        yield NOTHING

    async def _call(self, alike: _Alike) -> tuple[CheckedCall, dict[str, int], Catalogue]:
        """What pages that are alike are checked with."""
        lists = await self._catalogue(alike.catalogue)
        assert lists is not None
        if alike not in self._calls:
            if len(self._calls) >= _CALLS:
                self._calls.clear()
            self._calls[alike] = call_of(self._versions[alike.version], lists, alike.k, alike.pins)
        return *self._calls[alike], lists


def call_of(known: CertificatesAtVersion, lists: Catalogue, k: int, pins: int) -> tuple[CheckedCall, dict[str, int]]:
    """A call as the check knows it, without what is pinned, and the numbers of its items."""
    items = items_of(lists)
    index = dict(known.number_of)
    for item in items:
        index.setdefault(item, len(index))
    page = [index[item] for item in lists[0][:k]]
    base = tuple(page[position] for position in free_positions(len(page), pins))
    present = sum(1 << index[item] for item in items) - sum(1 << number for number in {*page} - {*base})
    return CheckedCall(base, present, known.certified), index


def _alike(records: RecordColumns, numbers: Ints) -> dict[_Alike, list[int]]:
    """Pages of one version, catalogue, size and set of pins, together, by their numbers."""
    together: dict[_Alike, list[int]] = {}
    columns = [records.column(KNOWLEDGE), records.column(K), records.pins]
    facts = zip(records.field("catalogue"), *(column.tolist() for column in columns), strict=True)
    for number, (catalogue, version, k, pins) in zip(numbers.tolist(), facts, strict=True):
        alike = _Alike(version, catalogue, k, int.from_bytes(pins, "little"))
        together.setdefault(alike, []).append(number)
    return together
