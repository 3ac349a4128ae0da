"""An engine with a clock that the test turns, and what tests of it share. No HTTP."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from saferank.service.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.core import Core
from saferank.service.engine import LOG_NAME, Engine
from saferank.service.problems import Problem
from saferank.service.replay import Report, verify
from saferank.service.settings import Settings
from saferank.service.snapshots import pack_context, read_snapshot
from saferank.service.tokens import Claim
from saferank.store.sqlite import ReadableStore

START = 1_800_000_000_000
BASE = ["a", "b", "c", "d"]
CANDIDATES = ["x", "y", "z"]
T = "default"


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


class House:
    """A store, a clock, and the engine that is running on them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.now = folder, START
        self.settings = Settings(store=folder, **{"window_seconds": 10, **settings})
        self.engine: Engine

    @property
    def core(self) -> Core:
        return self.engine._core

    async def start(self) -> None:
        self.engine = Engine(self.settings, self.folder / LOG_NAME, clock=lambda: self.now)
        self.engine._store._connection.execute("PRAGMA synchronous = OFF")  # no power is cut here
        await self.engine.start()

    async def restart(self) -> None:
        await self.engine.stop()
        await self.start()

    def later(self, seconds: float) -> None:
        self.now += round(1000 * seconds)

    def close(self) -> None:
        """Let every window end."""
        self.later(self.settings.window_seconds)
        self.engine.close_due()

    def rank(self, context: str = "c", tenant: str = T, **more: Any) -> RankAnswer:
        call = {"base_ranking": BASE, "candidates": CANDIDATES, "k": 3, **more}
        return self.engine.rank(tenant, RankCall(context=context, **call))

    async def click(
        self, page: RankAnswer | str, *clicks: str, tenant: str = T, **more: Any
    ) -> FeedbackAnswer | Problem:
        token = page if isinstance(page, str) else page.token
        named = {} if "impression_id" in more else {"token": token}
        (answer,) = await self.engine.feedback(tenant, [FeedbackCall(clicks=list(clicks), **named, **more)])
        return answer

    async def accept(self, page: RankAnswer | str, *clicks: str, **more: Any) -> FeedbackAnswer:
        answer = await self.click(page, *clicks, **more)
        assert isinstance(answer, FeedbackAnswer), answer
        return answer

    async def refuse(self, page: RankAnswer | str, *clicks: str, **more: Any) -> Problem:
        answer = await self.click(page, *clicks, **more)
        assert isinstance(answer, Problem), answer
        return answer

    def claim(self, page: RankAnswer) -> Claim:
        return self.core.tokens.read(page.token)

    def states(self) -> dict[int, Any]:
        """Everything that is known, ready to be compared."""
        return {
            number: read_snapshot(pack_context(context)).comparable()
            for number, context in self.core.state.contexts.items()
        }

    async def crashed_copy(self, folder: Path) -> "House":
        """A house started from what is on disk at this moment: nothing that is only in memory is there."""
        folder.mkdir(parents=True)
        for name in (LOG_NAME, f"{LOG_NAME}-wal", "token-keys.json"):
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, folder / name)
        house = House(folder)
        house.settings, house.now = self.settings, self.now
        await house.start()
        return house

    async def stop_and_replay(self) -> Report:
        """The engine's state goes into snapshots, which the replay of the whole log must equal."""
        await self.engine.stop()
        return verify(ReadableStore(self.folder / LOG_NAME))


@asynccontextmanager
async def house(folder: Path, **settings: Any) -> AsyncIterator[House]:
    """A running engine; at the end its log is replayed and compared with what was in memory."""
    made = House(folder, **settings)
    await made.start()
    try:
        yield made
    except BaseException:
        await made.engine.stop()
        raise
    await made.stop_and_replay()
