"""What the service says afterwards, compared with what the visitors know."""

import asyncio
import time
from typing import Any
from urllib.parse import quote

from http_load import Connections, get
from service_process import ServiceProcess

from saferank.cli import main
from tests.acceptance.service.ledger import Ledger, fold_of, pairs_of, twice_counted, why_illegal

LONGEST_CLOSING = 120.0
Stories = dict[str, dict[str, Any]]


async def stories_of(connections: Connections, ledger: Ledger) -> Stories:
    """The full story of every page that the service knows."""
    stories: Stories = {}

    async def read(impression_id: str) -> None:
        answer = await connections.send(get(f"/v1/impressions/{quote(impression_id, safe='')}"))
        assert answer.status in (200, 404), answer.body
        if answer.status == 200:
            stories[impression_id] = answer.json()

    everything = list(ledger.pages)
    for start in range(0, len(everything), 256):
        await asyncio.gather(*(read(impression_id) for impression_id in everything[start : start + 256]))
    return stories


def check_the_service(service: ServiceProcess, ledger: Ledger, stories: Stories) -> None:
    """Every window has ended: nothing lost, nothing twice, every page legal, statistics by the book."""
    ledger.check_clicks({impression_id: set(story["clicks"]) for impression_id, story in stories.items()})
    assert twice_counted(ledger.pages, stories) == []
    for impression_id, story in stories.items():
        page = ledger.pages[impression_id]
        assert (story["ranking"], story["leader_version"]) == (page.ranking, page.leader_version)
        if story["arm"] == "explore":
            assert why_illegal(story["leader"], page) is None, why_illegal(story["leader"], page)
        else:  # switched off, or the store was not heard from: production's page, however far the leader has moved
            assert page.ranking == story["base_ranking"][: len(page.ranking)]
    for name in {page.context for page in ledger.pages.values()}:
        _check_context(service, name, [story for story in stories.values() if story["context"] == name], ledger)


def closed_view(service: ServiceProcess, name: str) -> Any:
    """What a context says when its pages are closed; many contexts take a while on a busy machine."""
    until = time.monotonic() + LONGEST_CLOSING
    view = service.context(name)
    while view["open_pages"] and time.monotonic() < until:
        time.sleep(0.1)
        view = service.context(name)
    assert view["open_pages"] == 0, f"{name} has open pages long after their windows"
    return view


def _check_context(service: ServiceProcess, name: str, stories: list[dict[str, Any]], ledger: Ledger) -> None:
    view = closed_view(service, name)
    assert pairs_of(view) == fold_of((story for story in stories if story["counted"]), ledger.pages)
    assert sum(view["alarms"].values()) == 0
    clicked = [story for story in stories if story["clicks"]]
    found = {"clicked_pages": 0, "clicks": 0}
    for arm in view["arms"].values():
        found = {what: found[what] + arm[what] for what in found}
    assert found == {"clicked_pages": len(clicked), "clicks": sum(len(story["clicks"]) for story in clicked)}


def check_replay(service: ServiceProcess) -> None:
    """``saferank replay`` finds that the log gives every leader and every snapshot."""
    assert main(["replay", str(service.store)]) == 0
