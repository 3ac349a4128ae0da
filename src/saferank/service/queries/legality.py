"""Was a page legal when it was shown? The check before serving, made again from the log.

A replay notes the certificates of every version as it comes to it. An explored page names its version, its call's
catalogue and production's page; with those ``fault_of`` decides as it did when the page was served.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple, cast

from saferank.service.knowledge.catalogues import Catalogue, items_of
from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.page_check import CheckedCall, fault_of
from saferank.service.knowledge.sharing import Held, heard, held, joined, named
from saferank.store.contract import VersionRow
from saferank.store.page_record import PageRecord

ALL_UNTIL = 20_000
"""So many pages are checked one and all, those after them by chance."""

_KEPT = 100_000
"""Verdicts that are remembered."""


class CertificatesAtVersion(NamedTuple):
    """What was certain about pages of one size at a version."""

    certified: Certified
    number_of: dict[str, int]
    others: tuple[Held, ...] = ()  # by other sizes


NOTHING = CertificatesAtVersion(Certified(), {})

_NEW = 0
"""In place of a page size of which nothing was learnt: what all others have certified holds for it."""


class Legality:
    """The check of explored pages of one context; one in ``every`` after the first ``ALL_UNTIL`` (0: none)."""

    def __init__(self, every: int, catalogue: Callable[[bytes], Awaitable[Catalogue | None]]) -> None:
        self._every, self._catalogue = every, catalogue
        self._versions: dict[int, dict[int, CertificatesAtVersion]] = {}  # by version and page size
        self._expired: set[int] = set()
        self._verdicts: dict[tuple[int, bytes, tuple[str, ...]], str | None] = {}
        self.checked = 0

    def note(self, row: VersionRow, fold: Fold) -> None:
        """A version was made: keep its certificates."""
        if row.cause == "expired":
            self._expired.add(row.version)
        self._versions[row.version] = {
            k: CertificatesAtVersion(known.certified, cast(dict[str, int], known.learner.index), heard(known))
            for k, known in fold.knowledge.items()  # numbers of items are never used again
        }
        everything = tuple(held(fold.knowledge[k]) for k in sorted(fold.knowledge))
        self._versions[row.version][_NEW] = NOTHING._replace(others=everything)

    async def fault(self, record: PageRecord) -> str | None:
        """Why an explored page was illegal; None when it was legal, or is not looked at."""
        if not self._is_looked_at(record):
            return None
        lists = await self._catalogue(record.catalogue)
        if lists is None or record.knowledge not in self._versions:
            return None  # catalogues are written in the background: a crash may have taken one
        self.checked += 1
        key = (record.knowledge, record.catalogue, record.shown)
        if key not in self._verdicts:
            if len(self._verdicts) >= _KEPT:
                self._verdicts.clear()
            self._verdicts[key] = self._verdict(record, lists)
        return self._verdicts[key]

    def _is_looked_at(self, record: PageRecord) -> bool:
        if self.checked < ALL_UNTIL or self._every <= 1:
            return self._every > 0
        return int.from_bytes(record.impression[-4:], "big") % self._every == 0

    def _verdict(self, record: PageRecord, lists: Catalogue) -> str | None:
        """A page is legal when one of the sets of certificates that its server may have held allows it."""
        if tuple(lists[0][: record.k]) != record.production:
            return "it names another page as production's than its call did"
        faults = []
        for known in self._held(record):
            fault = fault_of(*_call(known, lists, record))
            if fault is None:
                return None
            faults.append(fault)
        return faults[0]

    def _held(self, record: PageRecord) -> Iterator[CertificatesAtVersion]:
        """Those of its version, without what had ended and was not yet published, and none at all."""
        version = record.knowledge
        yield self._of_size(version, record.k)
        while version + 1 in self._expired:
            version += 1
            yield self._of_size(version, record.k)
        yield NOTHING  # fewer certificates allow fewer pages

    def _of_size(self, version: int, k: int) -> CertificatesAtVersion:
        sizes = self._versions[version]
        return sizes[k] if k in sizes else sizes[_NEW]


def _call(known: CertificatesAtVersion, lists: Catalogue, record: PageRecord) -> tuple[CheckedCall, list[int]]:
    items = items_of(lists)
    index = dict(known.number_of)
    for item in (*items, *record.shown):
        index.setdefault(item, len(index))
    present = sum(1 << index[item] for item in items)
    certified = joined(known.certified, named(known.others), index)
    call = CheckedCall(tuple(index[item] for item in lists[0][: record.k]), present, certified)
    return call, [index[item] for item in record.shown]
