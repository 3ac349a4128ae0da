"""Lines of an export are in the order of time, also when several things happened in one millisecond."""

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

from saferank.service.calls.export import log_of
from saferank.store.contract import ContextRow, Store

EVIDENCE = json.dumps({"gained": [], "lost": []})


class _ThreeVersions:
    """A store with one context whose leader changed three times in one millisecond."""

    async def catalogue(self, digest: bytes) -> None:
        return None

    async def versions(self, context: int) -> list[Any]:
        return [
            SimpleNamespace(version=version, cause="page", leader=json.dumps([str(version)]), evidence=EVIDENCE, at=5)
            for version in (2, 3, 4)
        ]

    async def operations(self, after: int) -> list[Any]:
        return []

    async def all_pages(self, context: int | None, after: int) -> AsyncIterator[Any]:
        nothing: list[Any] = []
        for page in nothing:
            yield page


def test_versions_of_one_millisecond_keep_their_order() -> None:
    row = cast("ContextRow", SimpleNamespace(id=1, name="c", opened_at=5, terms=json.dumps({"catalogue": "", "k": 1})))

    async def lines() -> list[Any]:
        return [facts async for facts in log_of(cast("Store", _ThreeVersions()), {1: row}, None)]

    found = asyncio.run(lines())
    assert [line["kind"] for line in found] == ["opened", "version", "version", "version"]
    assert [line.get("version") for line in found] == [None, 2, 3, 4]
