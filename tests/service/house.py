"""A server with a clock that the test turns, and what tests of it share. No HTTP."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from saferank.service.calls.replay import ReplayReport, verify
from saferank.service.knowledge.fold import Fold, comparable, pack
from saferank.service.knowledge.knowledge import Knowledge
from saferank.service.server import Server
from saferank.service.settings import settings_of
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.wire.problems import Problem
from saferank.store.contract import StoreUnavailableError
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from saferank.store.page_record import PageRecord
from tests.limits import set_limits

START = 1_700_000_000_000
BASE = ["a", "b", "c", "d"]
CANDIDATES = ["x", "y", "z"]
T = "default"
BUBBLE = {"policy": "kl-ucb-br", "rule": "paper:1e-5"}
"""The policy of most tests: its kernels compile soonest."""
ALONE = {"holdout_share": 0, "guardrail_drop": 0}
"""Every page is the policy's: what a test of something else than the comparison wants."""


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 600))


class House:
    """A store, a clock, and the server that runs on them; its loops, but for the writer, are driven by the test."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.now, self._closed_at = folder, START, START
        asked = {**BUBBLE, **ALONE, "window_seconds": 10, "freshness_seconds": 3600, **settings}
        self.settings = settings_of({"store": str(folder), **set_limits(asked)})
        self.server: Server
        self.writing: asyncio.Task[None]

    # --- the clock of the server ---

    def monotonic(self) -> float:
        return self.now / 1000

    def wall(self) -> float:
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.002))

    async def start(self) -> None:
        self.store = SqliteStore(self.folder, clock=lambda: self.now)
        self.server = Server(self.settings, self.store, self, name="alone")
        await self.server.start(loops=False)
        self.writing = asyncio.create_task(self.server.writer.run())

    async def stop(self) -> None:
        self.writing.cancel()
        await asyncio.gather(self.writing, return_exceptions=True)
        await self.server.stop()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def later(self, seconds: float) -> None:
        """Let time pass; what waited half a second was written meanwhile, if the store takes it."""
        with suppress(StoreUnavailableError):
            await self.server.writer.flush()
        self.now += round(1000 * seconds)

    async def close(self) -> None:
        """Let every window end."""
        await self.later(self.settings.window_seconds)
        await self.server.closer.close_due(everything=True)

    async def rank(self, context: str = "c", tenant: str = T, **more: Any) -> RankAnswer:
        if self.now != self._closed_at:
            self._closed_at = self.now
            with suppress(StoreUnavailableError):  # as in its loop
                await self.server.closer.close_due()
        call = {"base_ranking": BASE, "candidates": CANDIDATES, "k": 3, **more}
        return await self.server.rank(tenant, RankCall(context=context, **call))

    async def click(
        self, page: RankAnswer | str, *clicks: str, tenant: str = T, **more: Any
    ) -> FeedbackAnswer | Problem:
        token = page if isinstance(page, str) else page.token
        named: dict[str, Any] = {} if "impression_id" in more else {"token": token}
        (answer,) = await self.server.feedback(tenant, [FeedbackCall(clicks=list(clicks), **named, **more)])
        return answer

    async def accept(self, page: RankAnswer | str, *clicks: str, **more: Any) -> FeedbackAnswer:
        answer = await self.click(page, *clicks, **more)
        assert isinstance(answer, FeedbackAnswer), answer
        return answer

    async def refuse(self, page: RankAnswer | str, *clicks: str, **more: Any) -> Problem:
        answer = await self.click(page, *clicks, **more)
        assert isinstance(answer, Problem), answer
        return answer

    def record(self, page: RankAnswer) -> PageRecord:
        return self.server.tokens.open(page.token)[0]

    def fold(self, context: str = "c") -> Fold:
        found = self.server.contexts.loaded(T, context)
        assert found is not None
        return found.fold

    def knowledge(self, context: str = "c") -> Knowledge:
        return self.fold(context).knowledge

    async def pairs(self, context: str = "c") -> dict[tuple[str, str], tuple[int, int]]:
        """(s, n) by pair of items that were compared."""
        view = await self.server.show_context(T, context)
        return {(pair.better, pair.worse): (pair.s, pair.n) for pair in view.pairs if pair.n}

    def states(self) -> dict[int, Any]:
        """Everything that is known, ready to be compared."""
        return {context.number: comparable(pack(context.fold)) for context in self.server.contexts}

    async def crashed_copy(self, folder: Path) -> "House":
        """A house started from what is on disk at this moment: nothing that is only in memory is there."""
        folder.mkdir(parents=True)
        for name in (FILE_NAME, f"{FILE_NAME}-wal"):
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, folder / name)
        house = House(folder)
        house.settings = structs.replace(self.settings, store=str(folder))
        house.now = self.now
        await house.start()
        return house

    async def stop_and_replay(self) -> ReplayReport:
        """What is known is published, and the replay of the whole log must equal it."""
        await self.stop()
        return await verify(SqliteStore(self.folder, readonly=True))


_CALLS = ("write", "heartbeat", "open_context", "find_context", "page", "publish", "add_operation", "close_through")


@contextmanager
def store_down(h: House) -> Iterator[None]:
    """The store does not answer inside."""

    async def down(*_: object, **__: object) -> None:
        raise StoreUnavailableError("database or disk is full")

    for name in _CALLS:
        setattr(h.store, name, down)
    try:
        yield
    finally:
        for name in _CALLS:
            delattr(h.store, name)


@asynccontextmanager
async def house(folder: Path, **settings: Any) -> AsyncIterator[House]:
    """A running server; at the end its log is replayed and compared with what was in memory."""
    made = House(folder, **settings)
    await made.start()
    try:
        yield made
    except BaseException:
        await made.stop()
        raise
    await made.stop_and_replay()
