"""Simulated visitors for ``saferank serve --demo``, and the hours before it started.

Five shelves, five stories: an order that is best already; an ordinary one; items that come and go; a season that turns,
so that what was proven is no longer true; and a bait, an item that wins every comparison and drives visitors away,
which the guardrail stops. Attractions are those of embedded instances (of seasons more extreme) and settings the
service's own, so numbers are of the size that a shop sees.

The past is played before the service starts, by a server of the service on a clock that is turned by hand, into the
store that it then serves from. Nothing else is made up: pages, clicks, certificates and the stop come out as they do.
From then on visitors call over HTTP, as any shop would.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from msgspec import structs

from saferank.click_models import DBN, PBM
from saferank.instances.embedded import embedded_instances
from saferank.randomness import Words, stream
from saferank.service.clock import TurnedClock
from saferank.service.server import Server
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankCall
from saferank.store.embedded.store import SqliteStore
from saferank.verbs import click

DEMO_SETTINGS: dict[str, Any] = {"window_seconds": 90.0}
"""Settings of a demo, unless the user gives others: what visitors do now counts in a minute and a half."""
PAST_HOURS, PAST_VISITS = 8, 5000
"""The past of a demo, and visits to each shelf in it."""
SIMULATED = (
    f"This is a demo. Visitors are simulated: those of the {PAST_HOURS} hours before the start were played when it "
    "started, through the same server; since then they come over HTTP."
)
N_VISITS = 5 * PAST_VISITS
"""In the past of a demo."""
VISITS_A_SECOND = 4
"""At most, on each shelf, once the service runs."""
REPORTS_TOGETHER = 10
"""Reports of a shelf that are sent in one call: a few seconds of visits."""
N_POSITIONS = 5
TURNOVER = 400
"""Visits to the changing shelf between two changes of its items."""
TURN = 3 * PAST_VISITS // 10
"""The visit with which the season turns."""

_TENDED_MS = 60_000
"""While the past is played, clicks are reported and the server closes so often."""
_log = logging.getLogger("saferank.demo")


@dataclass(frozen=True)
class Shelf:
    """A context: its items in production's order, how visitors choose among them, and how that changes."""

    name: str
    items: tuple[str, ...]
    model: PBM | DBN
    in_stock: int  # items that can be bought at a time: of more, a window slides over them
    later: PBM | DBN | None = None  # how visitors choose from visit TURN on

    def stock(self, visit: int) -> tuple[str, ...]:
        """What can be bought at a visit, in production's order."""
        if self.in_stock == len(self.items):
            return self.items
        first = visit // TURNOVER % len(self.items)
        return (self.items + self.items)[first : first + self.in_stock]

    def clicked(self, visit: int, items: Sequence[str], rng: Words) -> list[str]:
        """What the visitor of this page clicks."""
        shown = np.array([self.items.index(item) for item in items], np.uint32)
        clicks = np.zeros(len(shown), np.int64)
        click(self.later if self.later and visit >= TURN else self.model, shown, rng, clicks)
        return [item for item, chosen in zip(items, clicks, strict=True) if chosen]


def shelves() -> list[Shelf]:
    """The five shelves.

    >>> [shelf.name for shelf in shelves()][:4]
    ['lamps (best already)', 'tables (ordinary)', 'offers (come and go)', 'garden (season turns)']
    """
    best, _, ordinary, seasonal = (one.model for one in embedded_instances(4, n_items=10, models=("pbm",)))
    changing = embedded_instances(4, n_items=40, models=("pbm",))[3].model
    ranks = np.argsort(np.argsort(-seasonal.attraction, kind="stable"), kind="stable")
    summer, winter = (seasonal._replace(attraction=0.6 * 0.1 ** (order / 9)) for order in (ranks, 9 - ranks))
    bait = DBN(np.array([*[0.45] * 5, 0.85, *[0.2] * 4]), np.array([*[0.1] * 5, 1.0, *[0.1] * 4]), 0.95)
    return [
        _shelf("lamps (best already)", "lamp", best),
        _shelf("tables (ordinary)", "table", ordinary),
        _shelf("offers (come and go)", "offer", changing, in_stock=10),
        _shelf("garden (season turns)", "plant", summer, later=winter),
        _shelf("recipes (with a bait)", "recipe", bait),
    ]


def _shelf(name: str, kind: str, model: PBM | DBN, in_stock: int = 10, later: PBM | DBN | None = None) -> Shelf:
    items = tuple(f"{kind}-{number + 1}" for number in range(len(model.attraction)))
    return Shelf(name, items, model, in_stock, later)


def rank_call(shelf: Shelf, visit: int) -> dict[str, Any]:
    """The call for the page of a visitor."""
    stock = shelf.stock(visit)
    lists = {"base_ranking": list(stock[:N_POSITIONS]), "candidates": list(stock[N_POSITIONS:])}
    return {"context": shelf.name, **lists, "k": N_POSITIONS, "session_id": f"visitor-{visit}"}


# --- the past ---


def play_past(settings: Settings, played: Callable[[int], None], seed: int = 0) -> None:
    """Play the visits of the last days into the settings' store, which must be new; ``played`` is told of visits."""
    asyncio.run(_PastPlayer(settings, seed).play(played))


class _PastPlayer:
    """A server on a clock that stands still while it works."""

    def __init__(self, settings: Settings, seed: int) -> None:
        now = round(1000 * time.time())
        self._began, self._clock = now - PAST_HOURS * 3_600_000, TurnedClock(now - PAST_HOURS * 3_600_000)
        self._step = (now - self._began) / PAST_VISITS
        store = SqliteStore(Path(settings.store), clock=lambda: self._clock.now)
        patient = structs.replace(settings, freshness_seconds=3600.0)
        self._server = Server(patient, store, self._clock, "alone")
        self._reports: list[FeedbackCall] = []
        self._words = {shelf.name: stream(seed, shelf.name) for shelf in shelves()}

    async def play(self, played: Callable[[int], None]) -> None:
        await self._server.start(loops=False)
        writing = asyncio.create_task(self._server.writer.run())
        tended, places = self._began, shelves()
        for visit in range(PAST_VISITS):
            self._clock.now = self._began + round(visit * self._step)
            if self._clock.now - tended >= _TENDED_MS:
                tended = self._clock.now
                await self._tend()
            for shelf in places:
                await self._visit(shelf, visit)
            played(len(places))
        await self._tend()
        writing.cancel()
        await self._server.stop()

    async def _visit(self, shelf: Shelf, visit: int) -> None:
        page = await self._server.rank("default", RankCall(**rank_call(shelf, visit)))
        words = self._words[shelf.name]
        if clicks := shelf.clicked(visit, page.ranking, words):
            self._reports.append(FeedbackCall(token=page.token, clicks=clicks))

    async def _tend(self) -> None:
        """What a running server does all the time: take reports, renew its leases, close due windows."""
        reports, self._reports = self._reports, []
        await self._server.feedback("default", reports)
        await self._server.writer.flush()
        await self._server.heartbeat.attempt()
        await self._server.closer.close_due()


# --- visitors from now on ---


def visitors(base_url: str, stop: threading.Event, seed: int = 0) -> None:
    """Visit the service at ``base_url`` until ``stop`` is set, at a steady pace; a slow service slows them down."""
    places = shelves()
    with ThreadPoolExecutor(len(places), "saferank-demo") as crowd:
        counts = list(crowd.map(lambda shelf: _visitors_of(shelf, base_url, stop, stream(seed, shelf.name)), places))
    _log.info("%d simulated visits", sum(counts))


def _visitors_of(shelf: Shelf, base_url: str, stop: threading.Event, rng: Words) -> int:
    """Visit one shelf until ``stop`` is set, and report clicks some at a time; how many visits that made."""
    shop, visit, reports = HTTPConnection(urlsplit(base_url).netloc, timeout=1.0), PAST_VISITS, list[dict[str, Any]]()
    due = time.monotonic()
    while not stop.wait(due - time.monotonic()):
        due = max(due + 1 / VISITS_A_SECOND, time.monotonic())  # time that was lost is not made up for
        if page := _asked(shop, "/v1/rank", rank_call(shelf, visit)):
            reports.append({"token": page["token"], "clicks": shelf.clicked(visit, page["ranking"], rng)})
        if len(reports) >= REPORTS_TOGETHER:
            _asked(shop, "/v1/feedback", {"batch": reports})
            reports = []
        visit += 1
    shop.close()
    return visit - PAST_VISITS


def _asked(shop: HTTPConnection, path: str, body: object) -> Any:
    """The answer; None without one. A call that fails is not made again: the next visitor comes soon."""
    try:
        shop.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = shop.getresponse()
        said = answer.read()
    except (OSError, HTTPException):
        shop.close()  # the next call opens it again
        return None
    return json.loads(said) if answer.status == 200 else None
