"""Logs for the tests: written down page by page, or clicked by simulated users."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saferank.click_models import CCM, CM, DBN, DCM, PBM, UBM
from saferank.logs.records import ClickLog, DistinctPages, LogSummary
from saferank.randomness import stream
from saferank.verbs import click

Page = tuple[Sequence[int], Sequence[int], int]
"""Items, clicks, weight."""

_NOTHING = LogSummary("test", "sessions", 0, None, 0, 0, 0, 0, (), (), 0, 0, 0, ())


def log_of(pages: Sequence[Page], n_pairs: int, n_positions: int | None = None) -> ClickLog:
    """A log of one query whose items are 0 .. n_pairs - 1."""
    length = n_positions or max(len(items) for items, _, _ in pages)
    items, clicks = np.full((len(pages), length), -1), np.zeros((len(pages), length), np.uint8)
    for n, (shown, clicked, _) in enumerate(pages):
        items[n, : len(shown)], clicks[n, : len(shown)] = shown, clicked
    weight = np.array([page[2] for page in pages])
    made = DistinctPages(np.zeros(len(pages), np.int64), items, clicks, weight)
    return ClickLog(made, ("q",), tuple((0, str(pair)) for pair in range(n_pairs)), (None,), _NOTHING)


def expanded(pages: Sequence[Page]) -> list[tuple[list[int], list[int]]]:
    """Every page as often as it was seen, as the reference wants them."""
    return [(list(items), list(clicks)) for items, clicks, weight in pages for _ in range(weight)]


def random_pages(seed: int, n_pairs: int, n_positions: int, count: int) -> list[Page]:
    """Pages of all lengths with clicks that follow no model."""
    random = np.random.default_rng(seed)
    made: list[Page] = []
    for _ in range(count):
        length = int(random.integers(1, n_positions + 1))
        clicks = (random.random(length) < random.choice([0.0, 0.3, 0.8])).astype(int)
        made.append((random.permutation(n_pairs)[:length].tolist(), clicks.tolist(), int(random.integers(1, 5))))
    return made


def clicked_by(model: Any, rankings: Sequence[Sequence[int]], users: int, seed: int) -> ClickLog:
    """``users`` simulated visits, spread evenly over the rankings."""
    rng, clicks, seen = stream(seed, "planted"), np.zeros(len(rankings[0]), np.int64), Counter[tuple[int, ...]]()
    shown = [np.array(ranking, np.uint32) for ranking in rankings]
    for user in range(users):
        click(model, shown[user % len(shown)], rng, clicks)
        seen[(user % len(shown), *clicks.tolist())] += 1
    return log_of([(rankings[key[0]], key[1:], weight) for key, weight in seen.items()], len(model.attraction))


class Plant(NamedTuple):
    """Users, and the rankings that they see."""

    model: Any
    rankings: list[list[int]]


def plants(n_positions: int = 5, n_items: int = 7) -> dict[str, Plant]:
    """Users of each kind over the same items, shown in rankings that put every item at several positions."""
    attraction = np.array([0.45, 0.2, 0.55, 0.3, 0.35, 0.6, 0.25])[:n_items]
    rotations = [[(start + k) % n_items for k in range(n_positions)] for start in range(n_items)]
    examination = np.array([0.95 * 0.8**k for k in range(n_positions)])
    after = [[0.9 * 0.8**r, *(0.95 * 0.6 ** (r - c) for c in range(1, r + 1))] for r in range(n_positions)]
    triangle = np.array([row + [0.0] * (n_positions - len(row)) for row in after])
    satisfaction = np.array([0.3, 0.6, 0.5, 0.2, 0.7, 0.4, 0.6])[:n_items]
    return {
        "pbm": Plant(PBM(attraction, examination), rotations),
        "cm": Plant(CM(attraction), rotations),
        "dcm": _always_a_last_click(attraction, n_positions),
        "dbn": Plant(DBN(attraction, satisfaction, 0.8), rotations),
        "ubm": Plant(UBM(attraction, triangle), rotations),
        "ccm": Plant(CCM(attraction, 0.6, 0.9, 0.3), rotations),
    }


def _always_a_last_click(attraction: Any, n_positions: int) -> Plant:
    """The users that DCM's estimator is right about: a user who reaches the end of the page clicks there.

    It takes the last click for the end of the visit, which is not so where users look on in vain.
    """
    n_items = len(attraction)
    model = DCM(np.append(attraction, 1.0), np.array([0.7, 0.6, 0.65, 0.5, 0.0])[:n_positions])
    rankings = [[(start + k) % n_items for k in range(n_positions - 1)] + [n_items] for start in range(n_items)]
    return Plant(model, rankings)
