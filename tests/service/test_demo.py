"""The demo: visitors that behave, stop when told, and teach the service something within a minute."""

import threading
import time
from pathlib import Path

import httpx
import numpy as np

from saferank.randomness import stream
from saferank.service import demo
from saferank.service.settings import Settings
from saferank.verbs import expected_clicks
from tests.running_service import serving


def reward(shelf: demo.Shelf, leader: list[str]) -> float:
    return float(expected_clicks(shelf.model, np.array([shelf.items.index(item) for item in leader], np.uint32)))


def test_its_settings_are_settings() -> None:
    assert Settings(**demo.DEMO_SETTINGS).holdout_share > 0


def test_the_stories_are_what_their_names_say() -> None:
    best, upside_down, ordinary, changing = demo.shelves()
    assert list(best.model.attraction) == sorted(best.model.attraction, reverse=True)
    assert max(upside_down.model.attraction[: demo.N_POSITIONS]) < min(upside_down.model.attraction[demo.N_POSITIONS :])
    assert list(ordinary.model.attraction) != sorted(ordinary.model.attraction, reverse=True)
    stocks = [changing.stock(visit) for visit in range(0, 100 * demo.TURNOVER, demo.TURNOVER)]
    assert {len(set(stock)) for stock in stocks} == {changing.in_stock}
    assert set().union(*stocks) == set(changing.items) and stocks[0] != stocks[1]
    assert ordinary.stock(0) == ordinary.stock(10**6) == ordinary.items


def test_it_stops_when_told_even_if_nobody_answers() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=demo.visitors, args=("http://127.0.0.1:9", stop))
    thread.start()
    time.sleep(0.3)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_serve_demo_learns_within_a_minute(tmp_path: Path) -> None:
    """The upside-down shelf gets a better leader; the best one keeps its order (wrongly lost with p < 0.01)."""
    shelves = {shelf.name: shelf for shelf in demo.shelves()}
    best, upside_down = list(shelves)[:2]
    with (
        serving("--store", tmp_path / "store", "--demo", "--set", "holdout_share=0.1") as service,
        httpx.Client(base_url=service.address, timeout=30) as client,
    ):
        deadline = time.monotonic() + 240  # a minute on a quiet machine
        while time.monotonic() < deadline:
            time.sleep(1)
            leaders = {entry["name"]: entry["leader"] for entry in client.get("/v1/contexts").json()["contexts"]}
            if upside_down in leaders and leaders[upside_down] != list(shelves[upside_down].items[: demo.N_POSITIONS]):
                break
        view = client.get(f"/v1/contexts/{upside_down}").json()
        assert service.stop() == 0
        assert '"level": "error"' not in service.errors()
    assert set(leaders) == set(shelves)
    improved = shelves[upside_down]
    assert reward(improved, view["leader"]) > reward(improved, list(improved.items[: demo.N_POSITIONS]))
    assert leaders[best] == list(shelves[best].items[: demo.N_POSITIONS])
    assert view["arms"]["explore"]["pages"] > view["arms"]["holdout"]["pages"] > 0
    assert view["alarms"] == dict.fromkeys(view["alarms"], 0)


def test_the_same_seed_is_the_same_visitors() -> None:
    shelf = demo.shelves()[0]
    page = shelf.items[: demo.N_POSITIONS]
    streams = [stream(seed, "demo") for seed in (0, 0, 1)]
    clicks = [[demo.clicked(shelf, page, rng) for _ in range(20)] for rng in streams]
    assert clicks[0] == clicks[1] != clicks[2]
