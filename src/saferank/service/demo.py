"""Simulated visitors for ``saferank serve --demo``: they call the service over HTTP as any shop would.

Four shelves, four stories: an order that is best already, one that is upside down, an ordinary one, and one whose items
come and go. Which item is better is taken from the embedded instances; how much better is exaggerated, and the rule and
the window are the ones below, so that a newcomer sees in a minute what takes a real shop days.
"""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from saferank.click_models import PBM
from saferank.client import Client, Ranked
from saferank.instances.embedded import embedded_instances
from saferank.randomness import Words, stream
from saferank.verbs import Floats, click

DEMO_SETTINGS: dict[str, Any] = {"window_seconds": 1.0, "holdout_share": 0.1, "rule": "anytime:1e-3"}
"""Settings of a service that runs the demo, unless the user gives others."""
VISITS_A_SECOND = 40
"""At most, on each shelf."""
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


def visitors(base_url: str, stop: threading.Event, seed: int = 0) -> None:
    """Visit the service at ``base_url`` until ``stop`` is set, at a steady pace; a slow service slows them down."""
    client, places = Client(base_url, time_limit=1.0, queue=1000), shelves()
    try:
        with ThreadPoolExecutor(len(places), "saferank-demo") as crowd:
            counts = list(crowd.map(lambda shelf: _visitors_of(shelf, client, stop, stream(seed, shelf.name)), places))
    finally:
        client.close(1.0)
    _log.info("%d simulated visits; feedback: %s", sum(counts), client.delivery)


def _visitors_of(shelf: Shelf, client: Client, stop: threading.Event, rng: Words) -> int:
    """Visit one shelf until ``stop`` is set; how many visits that made."""
    pace, visit = _Pace(VISITS_A_SECOND, stop), 0
    while pace.goes_on():
        _visit(client, shelf, visit, rng)
        visit += 1
    return visit


def _visit(client: Client, shelf: Shelf, visit: int, rng: Words) -> None:
    stock = shelf.stock(visit)
    page = client.rank(
        shelf.name, stock[:N_POSITIONS], stock[N_POSITIONS:], k=N_POSITIONS, session_id=f"visitor-{visit}"
    )
    client.feedback(page, list(_clicked(shelf, page, rng)))


def _clicked(shelf: Shelf, page: Ranked, rng: Words) -> Iterator[str]:
    shown = np.array([shelf.items.index(item) for item in page.items], np.uint32)
    clicks = np.zeros(len(shown), np.int64)
    click(shelf.model, shown, rng, clicks)
    return (item for item, chosen in zip(page.items, clicks, strict=True) if chosen)


class _Pace:
    """So many steps a second; time that was lost is not made up for."""

    def __init__(self, steps_a_second: float, stop: threading.Event) -> None:
        self._gap, self._stop, self._next = 1 / steps_a_second, stop, monotonic()

    def goes_on(self) -> bool:
        """Wait for the next step; False when it is time to stop."""
        now = monotonic()
        self._next = max(self._next + self._gap, now)
        return not self._stop.wait(self._next - now)
