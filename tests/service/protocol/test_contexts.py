"""Contexts in memory: how many, how many bytes, and whose."""

import json
from typing import Any, cast

import pytest

from saferank.service.knowledge.view import Catalogues
from saferank.service.protocol import contexts as module
from saferank.service.protocol.contexts import Context, Contexts, Limits
from saferank.store.contract import ContextRow, Store
from tests.service.house import run

DIGEST = bytes(16)


class EmptyStore:
    """Nothing was published."""

    async def publication(self, number: int) -> None:
        return None


class Shelf:
    """Contexts of sizes that the test says; the tenant of a context is its first letter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
        self.sizes: dict[int, int] = {}
        monkeypatch.setattr(module, "memory_of", lambda fold: self.sizes[fold.context])
        self.put_away: list[int] = []
        catalogues = Catalogues()
        catalogues.note(DIGEST, (["a", "b", "c"], ["x"]), now=0.0)
        store = cast(Store, EmptyStore())
        self.contexts = Contexts(store, catalogues, Limits(**limits), self.put_away.append)
        self.rows: dict[str, ContextRow] = {}

    async def load(self, name: str, size: int) -> Context:
        facts: dict[str, Any] = {
            "policy": "kl-ucb-br",
            "rule": "paper:1e-5",
            "window_ms": 1000,
            "lifetime_ms": 0,
            "trust": 0.977,
        }
        terms = json.dumps({**facts, "k": 2, "catalogue": DIGEST.hex()})
        row = self.rows.setdefault(name, ContextRow(len(self.rows) + 1, name[0], name, terms, 1))
        self.sizes[row.id] = size
        return await self.contexts.load(row)

    @property
    def names(self) -> str:
        return " ".join(sorted(context.row.name for context in self.contexts))


def test_the_tenant_that_takes_the_most_memory_is_put_away_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        shelf = Shelf(monkeypatch, contexts=100, memory=1000)
        await shelf.load("small", 100)
        for name in ("big1", "big2", "big3"):
            await shelf.load(name, 300)
        assert (shelf.names, shelf.contexts.memory) == ("big1 big2 big3 small", 1000)
        shelf.contexts.loaded("b", "big1")  # asked for: now big2 is the oldest of its tenant
        await shelf.load("small again", 200)
        assert (shelf.names, shelf.contexts.memory) == ("big1 big3 small small again", 900)
        assert shelf.put_away == [shelf.rows["big2"].id]

    run(test())


def test_a_context_that_grows_puts_others_of_its_tenant_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        shelf = Shelf(monkeypatch, contexts=100, memory=1000)
        for name in ("old", "once", "tiny"):
            await shelf.load(name, 300)
        shelf.contexts.measure(await shelf.load("once", 500))
        assert (shelf.names, shelf.contexts.memory) == ("once tiny", 800)

    run(test())


def test_what_must_be_published_stays_and_nobody_else_pays_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        shelf = Shelf(monkeypatch, contexts=100, memory=1000)
        await shelf.load("small", 400)
        dirty = await shelf.load("big1", 900)
        dirty.dirty = True
        await shelf.load("big2", 300)
        assert shelf.names == "big1 big2 small"  # big2 is in use, small is within its share
        dirty.dirty = False
        shelf.contexts.measure(await shelf.load("big2", 300))
        assert shelf.names == "big2 small"

    run(test())


def test_the_number_of_contexts_is_limited_by_tenant_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        shelf = Shelf(monkeypatch, contexts=4)
        await shelf.load("small", 1)
        for number in range(6):
            await shelf.load(f"many{number}", 1)
        assert shelf.names == "many3 many4 many5 small"

    run(test())
