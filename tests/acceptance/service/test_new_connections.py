"""New connections get their turn while others keep the service busy: a refusal must reach its client."""

import asyncio
from pathlib import Path

from http_load import Connections
from service_process import ServiceProcess

BUSY, NEW = 64, 100
MOST_TURNS = 40
"""Answers that a busy connection may get, on average, until all new ones had theirs: about 4 are needed. With one
connection accepted in every turn of the event loop it would be more than 100."""

CALL = {"context": "shelf", "base_ranking": list("abcdef"), "candidates": list("xyz"), "k": 4}


class Rush:
    """Connections that ask without a pause."""

    def __init__(self, service: ServiceProcess) -> None:
        self.connections = Connections(lambda: service.port, BUSY)
        self.answers, self.over = 0, False

    async def one(self) -> None:
        while not self.over:
            await self.connections.post("/v1/rank", CALL)
            self.answers += 1


async def turns_until_all_are_served(service: ServiceProcess) -> float:
    rush, newcomers = Rush(service), Connections(lambda: service.port, NEW)
    busy = [asyncio.create_task(rush.one()) for _ in range(BUSY)]
    while rush.answers < 5 * BUSY:
        await asyncio.sleep(0.01)
    before = rush.answers
    await asyncio.gather(*(newcomers.post("/v1/rank", CALL) for _ in range(NEW)))
    turns = (rush.answers - before) / BUSY
    rush.over = True
    await asyncio.gather(*busy)
    rush.connections.close()
    newcomers.close()
    return turns


def test_new_connections_are_accepted_while_others_are_busy(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, policy="kl-ucb-br", log_level="warning", max_lag_seconds=60) as service:
        assert asyncio.run(turns_until_all_are_served(service)) < MOST_TURNS
        assert service.stop() == 0
