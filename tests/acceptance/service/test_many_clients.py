"""64 clients at once, on one context and on 1,000, while items and production's rankings change under their feet."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from service_process import ServiceProcess

from tests.acceptance.service.ledger import Ledger
from tests.acceptance.service.stories import check_replay, check_the_service, stories_of
from tests.acceptance.service.visitors import Visitors, some_clicks

CLIENTS = 64
WINDOW = 3.0
POOL = [f"item-{number}" for number in range(30)]
APPEAL = dict(zip(POOL, [0.05 + 0.03 * number for number in range(30)], strict=True))


def a_catalogue(context: str, epoch: int, n_ranked: int, n_candidates: int) -> tuple[list[str], list[str]]:
    """What production ranks in an epoch, and what else there is: part of the items stay, some go, some come."""
    chance = random.Random(f"{context} {epoch}")
    regulars = POOL[: n_ranked // 2]
    others = chance.sample(POOL[n_ranked // 2 :], n_ranked + n_candidates - len(regulars))
    ranked = chance.sample([*regulars, *others[: n_ranked - len(regulars)]], n_ranked)
    return ranked, others[n_ranked - len(regulars) :]


class Party:
    """Clients that each make a number of visits, now under one of the two newest catalogues, now under the other."""

    def __init__(self, service: ServiceProcess, contexts: list[str], visits: int, k: int) -> None:
        self.ledger, self.chance = Ledger(), random.Random(len(contexts))
        self.visitors = Visitors(service, self.ledger, most=CLIENTS)
        self.contexts, self.visits, self.k = contexts, visits, k
        self.made = 0

    async def play(self) -> None:
        await asyncio.gather(*(self._client(number) for number in range(CLIENTS)))
        assert self.visitors.wrong == []

    async def _client(self, number: int) -> None:
        for visit in range(self.visits):
            self.made += 1
            page = await self.visitors.shown(self._call(f"{number}-{visit // 2}"))  # every session reloads once
            assert page is not None
            for item in sorted(some_clicks(page, APPEAL, self.chance)):
                await self.visitors.click(page, [item])

    def _call(self, session: str) -> dict[str, Any]:
        context = self.chance.choice(self.contexts)
        epoch = self.made * 20 // (CLIENTS * self.visits) - self.chance.randrange(2)
        base, candidates = a_catalogue(context, epoch, 2 * self.k, 4)
        call: dict[str, Any] = {"context": context, "base_ranking": base, "candidates": candidates, "k": self.k}
        return call | ({"session_id": session} if self.chance.random() < 0.7 else {})


async def party(service: ServiceProcess, contexts: list[str], visits: int, k: int) -> Party:
    guests = Party(service, contexts, visits, k)
    await guests.play()
    await asyncio.sleep(WINDOW + 1.0)
    stories = await stories_of(guests.visitors.connections, guests.ledger)
    assert len(stories) == len(guests.ledger.pages), "a page that was shown is not in the log"
    check_the_service(service, guests.ledger, stories)
    guests.visitors.connections.close()
    return guests


@pytest.mark.parametrize(("n_contexts", "visits", "k"), [(1, 60, 5), pytest.param(1000, 60, 3, marks=pytest.mark.soak)])
def test_no_update_is_lost_and_every_page_is_legal(tmp_path: Path, n_contexts: int, visits: int, k: int) -> None:
    settings = {
        "policy": "kl-ucb-br",
        "window_seconds": WINDOW,
        "rule": "anytime:0.001",
        "log_level": "warning",
        "max_lag_seconds": 60,
    }
    with ServiceProcess(tmp_path, **settings) as service:
        guests = asyncio.run(party(service, [f"shelf {number}" for number in range(n_contexts)], visits, k))
        known = service.read("/v1/contexts")["contexts"]
        assert {context["name"] for context in known} == {page.context for page in guests.ledger.pages.values()}
        if n_contexts == 1:
            changes = service.read("/v1/contexts/shelf%200/changes")["changes"]
            leaders = {change["version"]: change["leader"] for change in changes}
            assert len(leaders) > 1, "something should have been certified"
            assert {page.leader_version for page in guests.ledger.pages.values()} <= set(leaders)
        assert service.stop() == 0
        check_replay(service)
