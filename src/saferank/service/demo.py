"""Simulated visitors for ``saferank serve --demo``: they call the service over HTTP as any shop would.

Four shelves, four stories: an order that is best already, one that is upside down, an ordinary one, and one whose items
come and go. Which item is better is taken from the embedded instances; how much better is exaggerated, and the rule and
the window are the ones below, so that a newcomer sees in a minute what takes a real shop days.
"""

import json
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from saferank.click_models import PBM
from saferank.instances.embedded import embedded_instances
from saferank.randomness import Words, stream
from saferank.verbs import Floats, click

DEMO_SETTINGS: dict[str, Any] = {"window_seconds": 1.0, "rule": "anytime:1e-3"}
"""Settings of a service that runs the demo, unless the user gives others."""
VISITS_A_SECOND = 40
"""At most, on each shelf."""
REPORTS_TOGETHER = 10
"""Reports of a shelf that are sent in one call: a quarter of a second of visits."""
N_POSITIONS = 5
TURNOVER = 400
"""Visits to the changing shelf between two changes of its items."""

_BEST, _WORST = 0.8, 0.03
_EXAMINATION = (1.0, 0.92, 0.85, 0.78, 0.72)
_log = logging.getLogger("saferank.demo")


@dataclass(frozen=True)
class Shelf:
    """A context: its items in production's order, how attractive they are, and how many of them change at a time."""

    name: str
    items: tuple[str, ...]
    model: PBM
    in_stock: int
    changing: bool = False

    def stock(self, visit: int) -> tuple[str, ...]:
        """What can be bought at a visit, in production's order: a window that slides over the items."""
        if not self.changing:
            return self.items
        first = visit // TURNOVER % len(self.items)
        return (self.items + self.items)[first : first + self.in_stock]


def shelves() -> list[Shelf]:
    """The four shelves.

    >>> [shelf.name for shelf in shelves()]
    ['lamps (in the best order)', 'chairs (upside down)', 'tables (ordinary)', 'offers (coming and going)']
    """
    best, worst, ordinary = embedded_instances(3, n_items=10, models=("pbm",))
    changing = embedded_instances(4, n_items=40, models=("pbm",))[3]
    return [
        _shelf("lamps (in the best order)", "lamp", best.model.attraction),
        _shelf("chairs (upside down)", "chair", worst.model.attraction),
        _shelf("tables (ordinary)", "table", ordinary.model.attraction),
        _shelf("offers (coming and going)", "offer", changing.model.attraction, in_stock=10),
    ]


def _shelf(name: str, kind: str, attraction: Floats, in_stock: int | None = None) -> Shelf:
    items = tuple(f"{kind}-{i + 1}" for i in range(len(attraction)))
    model = PBM(_exaggerated(attraction), np.array(_EXAMINATION))
    return Shelf(name, items, model, in_stock or len(items), changing=in_stock is not None)


def _exaggerated(attraction: Floats) -> Floats:
    """The same order with equal ratios from the best to the worst."""
    ranks = np.argsort(np.argsort(-attraction, kind="stable"), kind="stable")
    spread: Floats = _BEST * (_WORST / _BEST) ** (ranks / (len(attraction) - 1))
    return spread


class _Shop:
    """A shop's connection to the service. A call that fails is not made again: the next visitor comes soon."""

    def __init__(self, base_url: str) -> None:
        self._connection = HTTPConnection(urlsplit(base_url).netloc, timeout=1.0)
        self._reports: list[dict[str, object]] = []

    def rank(self, context: str, stock: Sequence[str], session: str) -> tuple[list[str], str] | None:
        """The items to show and the token of the page; None without an answer."""
        call = {"context": context, "base_ranking": stock[:N_POSITIONS], "candidates": stock[N_POSITIONS:]}
        page = self._post("/v1/rank", {**call, "k": N_POSITIONS, "session_id": session})
        return page and (page["ranking"], page["token"])

    def report(self, token: str, clicks: list[str]) -> None:
        """Send the clicks, some reports at a time."""
        self._reports.append({"token": token, "clicks": clicks})
        if len(self._reports) >= REPORTS_TOGETHER:
            self._post("/v1/feedback", {"batch": self._reports})
            self._reports = []

    def _post(self, path: str, body: object) -> Any:
        try:
            self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            said = answer.read()
        except (OSError, HTTPException):
            self._connection.close()  # the next call opens it again
            return None
        return json.loads(said) if answer.status == 200 else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def visitors(base_url: str, stop: threading.Event, seed: int = 0) -> None:
    """Visit the service at ``base_url`` until ``stop`` is set, at a steady pace; a slow service slows them down."""
    places = shelves()
    with ThreadPoolExecutor(len(places), "saferank-demo") as crowd:
        counts = list(crowd.map(lambda shelf: _visitors_of(shelf, base_url, stop, stream(seed, shelf.name)), places))
    _log.info("%d simulated visits", sum(counts))


def _visitors_of(shelf: Shelf, base_url: str, stop: threading.Event, rng: Words) -> int:
    """Visit one shelf until ``stop`` is set; how many visits that made."""
    shop, pace, visit = _Shop(base_url), _Pace(VISITS_A_SECOND, stop), 0
    while pace.goes_on():
        if page := shop.rank(shelf.name, shelf.stock(visit), f"visitor-{visit}"):
            items, token = page
            shop.report(token, clicked(shelf, items, rng))
        visit += 1
    shop.close()
    return visit


def clicked(shelf: Shelf, items: Sequence[str], rng: Words) -> list[str]:
    """What a visitor of this page clicks."""
    shown = np.array([shelf.items.index(item) for item in items], np.uint32)
    clicks = np.zeros(len(shown), np.int64)
    click(shelf.model, shown, rng, clicks)
    return [item for item, chosen in zip(items, clicks, strict=True) if chosen]


class _Pace:
    """So many steps a second; time that was lost is not made up for."""

    def __init__(self, steps_a_second: float, stop: threading.Event) -> None:
        self._gap, self._stop, self._next = 1 / steps_a_second, stop, monotonic()

    def goes_on(self) -> bool:
        """Wait for the next step; False when it is time to stop."""
        now = monotonic()
        self._next = max(self._next + self._gap, now)
        return not self._stop.wait(self._next - now)
