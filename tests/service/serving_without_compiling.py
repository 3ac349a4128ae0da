"""A service that is started, and then does everything that calls and loops can ask for: nothing is compiled any more.

Run in a process of its own (``test_serving_without_compiling.py``): other tests have compiled more than a start does.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

from msgspec import structs

from saferank._inner_code import Kernel
from saferank._kernel import nothing_compiled
from saferank.service.knowledge.view import digest_of, pack_catalogue
from saferank.service.protocol.contexts import terms_by_settings
from saferank.service.wire.calls import ForgetCall, SettingsCall
from saferank.store.contract import CatalogueRow, Group
from tests.service.house import House, T


def found(self: Any, signature: Any) -> Any:
    """The code that was made at the start. A loop that only sees an error would try again: end at once without it."""
    if signature in self.overloads:
        return self.overloads[signature].entry_point
    traceback.print_stack()
    print(f"{self.py_func.__name__} is compiled while serving, for {signature}", file=sys.stderr, flush=True)
    os._exit(1)


compiled = Kernel.compile


def found_here(self: Any, signature: Any) -> Any:
    """The same for the thread of the event loop alone."""
    return (found if threading.current_thread() is threading.main_thread() else compiled)(self, signature)


async def serve(h: House, items: int, k: int) -> None:
    names, context = [f"item-{number}" for number in range(items)], f"{items} items"
    lists: dict[str, Any] = {"base_ranking": names[:-2], "candidates": names[-2:]}
    for number in range(30):
        page = await h.rank(context, session_id=f"{number % 20}", source=f"{number % 7}", **lists, k=k, explain=True)
        await h.accept(page, *page.ranking[: number % 3], event_id=f"{number}")
        await h.later(1)
    await h.rank(context, base_ranking=names[::-1], k=k)
    await h.rank(context, base_ranking=[*names[1:], "new"], candidates=["newer"], k=k, session_id="late")
    await h.accept(await h.rank(context, **lists, k=k - 1, session_id="other size"), names[0])
    await h.rank(context, **lists, k=k, mode="shadow")
    await h.close()
    await h.server.show_context(T, context)
    await h.server.set_context(T, context, SettingsCall(why="test", holdout_share=0.5))
    await h.rank(context, **lists, k=k, session_id="held out")
    await h.later(15 * 86_400)  # certificates end
    await h.rank(context, **lists, k=k)
    await h.close()
    await h.server.rollback(T, context, 1, "test")
    await h.server.reset(T, context, "test")
    await h.rank(context, **lists, k=k)


async def take_over(policy: str, rule: str) -> None:
    """A context of another server, with another policy than this one was started with; then it is reset to this one."""
    with tempfile.TemporaryDirectory() as folder:
        h = House(Path(folder), policy="bubble-rank", rule="paper:1e-5")
        await h.start()
        lists = [f"item-{number}" for number in range(12)], ["newer"]
        others = structs.replace(h.settings, policy=policy, rule=rule)
        terms = {**terms_by_settings(others), "window_ms": 1000, "k": 5, "catalogue": digest_of(lists).hex()}
        await h.store.write(Group(catalogues=[CatalogueRow(digest_of(lists), pack_catalogue(lists))]))
        await h.store.open_context(T, "theirs", json.dumps(terms), 10)
        Kernel.compile = found_here  # type: ignore[method-assign, assignment]
        with nothing_compiled():
            for _ in range(2):
                page = await h.rank("theirs", base_ranking=lists[0], candidates=lists[1], k=5, session_id="s")
                await h.accept(page, page.ranking[0])
                await h.later(2)
                await h.close()
            assert page.mode == "live" and not h.server.contexts.set_aside
            assert (await h.server.show_context(T, "theirs")).policy == policy
            assert (await h.server.reset(T, "theirs", "test")).policy == "bubble-rank"
        await h.stop()


async def main(policy: str, rule: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        h = House(Path(folder), policy=policy, rule=rule)
        await h.start()
        Kernel.compile = found  # type: ignore[method-assign, assignment]
        for items, k in ((5, 3), (12, 4), (40, 10)):
            await serve(h, items, k)
        await h.server.forget(T, ForgetCall("test", session_id="1"))
        await h.server.forgetting.carry_out()
        for answer in (
            h.server.overview(T),
            h.server.list_contexts(T),
            h.server.effect(T, None),
            h.server.shadow(T, None),
        ):
            await answer
        h.server.counters()
        assert [facts async for facts in h.server.export(T, None)]
        await h.stop()


if __name__ == "__main__":
    asyncio.run((take_over if sys.argv[1] == "take over" else main)(*sys.argv[-2:]))
