"""The server itself counts in order of display: the delays of ``test_delayed_clicks.py`` through the real service code.

Two equal items; clicks of one are reported at once, those of the other 200 informative pages later, inside the window.
"""

import asyncio
import random
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from equal_items import Visits, decided, in_order_of_arrival

from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankCall
from saferank.store.embedded.store import SqliteStore

DELAY, INFORMATIVE = 200, 700
CALL = RankCall(context="pair", base_ranking=["first", "second"], k=2)


class SlowClock:
    """One millisecond for every page, for the server and for its store."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000

    def wall(self) -> float:
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def played(folder: Path, chance: random.Random) -> tuple[list[tuple[int, int]], Visits, int]:
    """(s, n) seen from the first item after every informative page; what users did; the last leader version."""
    clock, window = SlowClock(), 3 * DELAY  # only about every other page compares the two
    asked: dict[str, Any] = {"policy": "kl-ucb-br", "rule": "paper:1e-5", "holdout_share": 0, "guardrail_drop": 0}
    settings = Settings(store=str(folder), window_seconds=window / 1000, **asked)
    server = Server(settings, SqliteStore(folder, clock), clock, name="alone")
    await server.start(loops=False)
    writing = asyncio.create_task(server.writer.run())
    seen, swapped, second_won = [], [], []
    waiting: deque[tuple[int, str]] = deque()  # when a click on the second item is reported, and the token
    for page_number in range(2 * INFORMATIVE):
        clock.now += 1
        await server.closer.close_due()
        page = await server.rank("default", CALL)
        reports = []
        while waiting and waiting[0][0] <= page_number:
            reports.append(FeedbackCall(token=waiting.popleft()[1], clicks=["second"]))
        if server.tokens.open(page.token)[0].round % 2 == 0:  # in even rounds the first two places are a pair
            clicked = page.ranking[int(chance.random() < 0.3)]
            swapped.append(page.ranking[0] == "second")
            second_won.append(clicked == "second")
            seen.append(await duel(server))
            if clicked == "second":
                waiting.append((page_number + 2 * DELAY, page.token))
            else:
                reports.append(FeedbackCall(token=page.token, clicks=["first"]))
        if reports:
            answers = await server.feedback("default", reports)
            assert all(isinstance(answer, FeedbackAnswer) and answer.accepted for answer in answers)
    version = (await server.show_context("default", "pair")).leader_version
    writing.cancel()
    await server.stop()
    return seen, Visits(np.array(swapped), np.array(second_won)), version


async def duel(server: Server) -> tuple[int, int]:
    pairs = (await server.show_context("default", "pair")).pairs
    s, n = (pairs[0].s, pairs[0].n) if pairs else (0, 0)
    return (s if pairs and pairs[0].better == "first" else -s), n


def test_clicks_are_counted_in_order_of_display(tmp_path: Path) -> None:
    seen, visits, version = asyncio.run(played(tmp_path, random.Random(7)))
    leads = np.concatenate([[0], np.cumsum(np.where(visits.second_won, -1, 1))])
    assert seen[-1][1] > INFORMATIVE // 2, "pages should have been learnt"
    assert all(s == leads[n] for s, n in seen), "a lead that is not that of the first n pages in order of display"
    assert version == 1
    assert decided(in_order_of_arrival(visits, DELAY), "paper:1e-5"), "order of arrival would have been fooled"
