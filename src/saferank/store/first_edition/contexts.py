"""One context of a first-edition store, built up again from its events."""

import hashlib
import json
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from saferank.store.contract import CatalogueRow, ContextRow, PageRow
from saferank.store.first_edition.pages import OldPage, read
from saferank.store.page_record import DIGEST_SIZE, PageRecord

SERVER = "first edition"
"""Who issued the pages, by the new store."""

_FORMS = {"kl-ucb-br": "KlUcbBrState", "bubble-rank": "BubbleRankState"}
_EXPLORE, _HOLDOUT, _OFF, _SHADOW, _FROZEN, _REPEAT = range(6)
_NEW_REPEAT = 4
_ARMS = {_EXPLORE: 0, _HOLDOUT: 1, _OFF: 2, _SHADOW: 3, _FROZEN: 2, _REPEAT: _NEW_REPEAT}


class Kind(IntEnum):
    """Events of the first edition."""

    PAGE = 1
    CLICKS = 2
    OPENED = 3
    CATALOGUE = 4
    CLOSED = 5
    KILL = 6
    UNKILL = 7
    ROLLBACK = 8
    FROZEN = 9
    ALARM = 10


class Issued:
    """A page, its clicks, and what the catalogue was when it was issued."""

    __slots__ = ("base", "catalogue", "clicks", "impression", "page")

    def __init__(self, impression: bytes, page: OldPage, catalogue: bytes, base: tuple[str, ...]) -> None:
        self.impression, self.page, self.catalogue, self.base = impression, page, catalogue, base
        self.clicks = 0

    @property
    def closes_at(self) -> int:
        """When its window ended."""
        return int.from_bytes(self.impression[:6], "big") + self.page.window_ms


class OldContext:
    """Follows the events of a context as far as its pages need it: items, catalogues, what a rollback undid."""

    def __init__(self, number: int, at: int, body: bytes) -> None:
        facts = json.loads(body)
        self.number, self.tenant, self.name = number, facts["tenant"], facts["name"]
        self.k, self.policy, self.rule, self.window_ms = facts["opening"]
        if self.policy not in _FORMS:
            raise ValueError(f"context {self.name!r} has the policy {self.policy!r}, which cannot be converted")
        self.opened_at, self.killed = at, ""
        self.items: list[str] = []
        self.pages: dict[bytes, Issued] = {}
        self.open: list[Issued] = []
        self.learnt: list[bytes] = []  # what the learner knew, in order
        self.undone: set[bytes] = set()
        self.versions: dict[int, tuple[list[bytes], int]] = {}  # by version: what was learnt until then
        self.first_catalogue = self.catalogue = self.set_catalogue(facts["base"], facts["candidates"])

    def set_catalogue(self, base: list[str], candidates: list[str], digest: bytes = b"") -> CatalogueRow:
        """Other items: new ones get the next numbers, which they keep."""
        known = set(self.items)
        self.items += [item for item in dict.fromkeys([*base, *candidates]) if item not in known]
        self.base = tuple(base[: self.k])
        text = json.dumps([base, candidates], ensure_ascii=False, separators=(",", ":")).encode()
        digest = digest or hashlib.blake2b(text, digest_size=DIGEST_SIZE).digest()
        self.catalogue = CatalogueRow(digest, zlib.compress(text, 1))
        return self.catalogue

    def add_page(self, impression: bytes, body: bytes) -> None:
        """A page was issued."""
        page = Issued(impression, read(body), self.catalogue.digest, self.base)
        self.pages[impression] = page
        self.open.append(page)

    def click(self, impression: bytes, body: bytes) -> None:
        """Clicks arrived."""
        self.pages[impression].clicks |= int.from_bytes(body, "little")

    def close(self, at: int, versions: dict[bytes, list[int]]) -> None:
        """Pages that were due were learnt in display order; ``versions`` by the page that brought them about."""
        due = sorted((page for page in self.open if page.closes_at <= at), key=lambda page: page.impression)
        self.open = [page for page in self.open if page.closes_at > at]
        for page in due:
            if page.page.counted and page.impression not in self.undone:
                self.learnt.append(page.impression)
            for version in versions.get(page.impression, ()):
                self.mark(version)

    def mark(self, version: int) -> None:
        """A version of the leader came here."""
        self.versions[version] = (self.learnt, len(self.learnt))

    def roll_back(self, version: int) -> None:
        """What was learnt since a version is forgotten, and pages that are open are not counted."""
        learnt, length = self.versions[version]
        self.learnt = learnt[:length]
        self.undone |= {page.impression for page in self.open}

    # --- what becomes of it ---

    def row(self) -> ContextRow:
        """The context in the new store. Certificates of the first edition had no lifetime."""
        terms = {
            "policy": self.policy, "rule": self.rule, "window_ms": self.window_ms, "lifetime_ms": 0, "k": self.k,
            "catalogue": self.first_catalogue.digest.hex(),
        }  # fmt: skip
        return ContextRow(self.number, self.tenant, self.name, json.dumps(terms), self.opened_at)

    def rows(self, numbered: Callable[[], int]) -> list[PageRow]:
        """The pages in the new store."""
        known = {*self.learnt, *(page.impression for page in self.open if page.impression not in self.undone)}
        return [self._row(page, page.impression in known, numbered()) for page in self.pages.values()]

    def _row(self, page: Issued, known: bool, number: int) -> PageRow:
        record = self._record(page, known)
        return PageRow(page.impression, self.number, record.closes_at, record.packed(), SERVER, number, page.clicks)

    def _record(self, page: Issued, known: bool) -> PageRecord:
        old = page.page
        arm = _ARMS[old.arm]
        facts: dict[str, Any] = {"instead": old.names} if old.names else {}
        return PageRecord(
            impression=page.impression, tenant=self.tenant, context=self.name, policy=self.policy,
            form=_FORMS[self.policy], arm=arm if known or arm != _EXPLORE else _NEW_REPEAT, knowledge=1,
            round=old.round, window_ms=old.window_ms, k=old.k, visitor=old.session, catalogue=page.catalogue,
            coins=old.coins, row=tuple(self.items[number] for number in old.numbers), law=old.law,
            challenger=old.challenger, request_id=old.request_id, base=page.base, **facts,
        )  # fmt: skip
