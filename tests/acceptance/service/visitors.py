"""Visitors that keep a ledger and do not give up: what was not acknowledged is sent again, also to the next process."""

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from http_load import Answer, Connections
from service_process import ServiceProcess

from tests.acceptance.service.ledger import Ledger, ShownPage

POLITE = (429, 503)


class Visitors:
    """Calls of many visitors to one service, which may be away for a while."""

    def __init__(self, service: ServiceProcess, ledger: Ledger, most: int = 64) -> None:
        self.ledger = ledger
        self.connections = Connections(lambda: service.port, most)
        self.present = asyncio.Event()
        self.present.set()
        self.leaving = False
        self.wrong: list[str] = []  # answers that should not have been given

    async def shown(self, call: dict[str, Any]) -> ShownPage | None:
        """A page, or None when the visitors are to leave."""
        answer, _ = await self._insist("/v1/rank", call)
        return None if answer is None else self.ledger.add(call, answer.json())

    async def click(self, page: ShownPage, clicks: Iterable[str], event_id: str | None = None) -> dict[str, Any] | None:
        """Report clicks until they are acknowledged or too late."""
        clicked = sorted(clicks)
        report: dict[str, Any] = {"token": page.token, "clicks": clicked}
        if event_id is not None:
            report["event_id"] = event_id
        page.unsure.update(clicked)
        answer, attempts = await self._insist("/v1/feedback", report)
        if answer is None:
            return None
        said: dict[str, Any] = answer.json()
        if said["accepted"]:
            page.confirmed.update(clicked)
            self.ledger.acknowledged += 1
        else:
            assert said["late"]
            self.ledger.late += 1
            if attempts == 1:  # it was never sent before, so nothing of it can have counted
                page.unsure.subtract(clicked)
        return said

    async def _insist(self, path: str, content: dict[str, Any]) -> tuple[Answer | None, int]:
        attempts = 0
        while not self.leaving:
            await self.present.wait()
            attempts += 1
            try:
                answer = await self.connections.post(path, content)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            if answer.status == 200:
                return answer, attempts
            if answer.status not in POLITE:
                self.wrong.append(f"{path} {content}: {answer.status} {answer.body!r}")
                return None, attempts
            await asyncio.sleep(0.05)
        return None, attempts


def some_clicks(page: ShownPage, appeal: dict[str, float], chance: random.Random) -> set[str]:
    """Clicks by appeal; unknown items have little."""
    return {item for item in page.ranking if chance.random() < appeal.get(item, 0.1)}
