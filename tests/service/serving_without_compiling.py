"""A service that is started, and then does everything that calls and loops can ask for: nothing is compiled any more.

Run in a process of its own (``test_serving_without_compiling.py``): other tests have compiled more than a start does.
"""

import asyncio
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from saferank._inner_code import Kernel
from saferank.service.wire.calls import ForgetCall, SettingsCall
from tests.service.engine_harness import House, T


def found(self: Any, signature: Any) -> Any:
    """The code that was made at the start. A loop that only sees an error would try again: end at once without it."""
    if signature in self.overloads:
        return self.overloads[signature].entry_point
    traceback.print_stack()
    print(f"{self.py_func.__name__} is compiled while serving, for {signature}", file=sys.stderr, flush=True)
    os._exit(1)


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
    await h.engine.context(T, context)
    await h.engine.set_context(T, context, SettingsCall(why="test", holdout_share=0.5))
    await h.rank(context, **lists, k=k, session_id="held out")
    await h.later(15 * 86_400)  # certificates end
    await h.rank(context, **lists, k=k)
    await h.close()
    await h.engine.rollback(T, context, 1, "test")
    await h.engine.reset(T, context, "test")
    await h.rank(context, **lists, k=k)


async def main(policy: str, rule: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        h = House(Path(folder), policy=policy, rule=rule)
        await h.start()
        Kernel.compile = found  # type: ignore[method-assign, assignment]
        for items, k in ((5, 3), (12, 4), (40, 10)):
            await serve(h, items, k)
        await h.engine.forget(T, ForgetCall("test", session_id="1"))
        await h.engine.forgetting.carry_out()
        for answer in (h.engine.overview(T), h.engine.contexts(T), h.engine.effect(T, None), h.engine.shadow(T, None)):
            await answer
        h.engine.counters()
        assert [line async for line in h.engine.export(T, None)]
        await h.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
