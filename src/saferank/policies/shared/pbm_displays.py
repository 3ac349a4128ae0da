"""What PBM-UCB and PBM-TS count, and how they place items: clicks and displays by item and position.

Both know the examination probability kappa of every position, and put the item with the largest value at the position
with the largest kappa (equal ones: the upper position first).
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.policies.registry import Setup
from saferank.policies.shared.best_items import enlarged, items_of, ranked
from saferank.verbs import Call, Flags, Floats, Impression, Ints, Items


class Displays(NamedTuple):
    """Statistics by item and position, and the order of the positions, which the best guess needs."""

    shown: Ints  # [item, position]
    clicked: Ints  # [item, position]
    mass: Floats  # by item: M_i, the sum of kappa over its displays
    places: Ints  # positions by decreasing kappa


def known_examination(policy: str, setup: Setup) -> Floats:
    """The examination probability of every position; ValueError when it is not known."""
    if setup.examination is None:
        raise ValueError(f"{policy} needs the examination probability of every position, and the setup has none")
    return np.array(setup.examination[: setup.n_positions], np.float64)


def new_displays(n_items: int, kappa: Floats) -> Displays:
    """Nothing was shown yet."""
    shape = (n_items, len(kappa))
    places = np.argsort(-kappa, kind="stable").astype(np.int64)
    return Displays(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(n_items), places)


def with_more_items(displays: Displays, n_items: int) -> Displays:
    """The same with room for items that are new."""
    shown, clicked, mass, places = displays
    return Displays(enlarged(shown, n_items), enlarged(clicked, n_items), enlarged(mass, n_items), places)


@kernel
def count_displays(displays: Displays, kappa: Floats, impression: Impression, clicks: Ints) -> None:
    """Count a page and its clicks."""
    for position in range(len(clicks)):
        item = impression.ranking[position]
        displays.shown[item, position] += 1
        displays.clicked[item, position] += clicks[position]
        displays.mass[item] = _mass(displays, kappa, item)


@kernel
def _mass(displays: Displays, kappa: Floats, item: int) -> float:
    """The sum of kappa over the displays of an item, added up by position so that equal counts give equal sums."""
    mass = 0.0
    for position in range(len(kappa)):
        mass += displays.shown[item, position] * kappa[position]
    return mass


class PbmPlan(NamedTuple):
    """The items of a call, and room to compute in."""

    base: Items  # production's ranking, of which only the length counts
    present: Flags  # by item
    value: Floats  # by item: its bound, or its draw for the newest page
    row: Items  # [position]


def plan_of(policy: Any, evidence: Any, call: Call) -> PbmPlan:
    """Room for a call."""
    n_items = len(evidence.displays.mass)
    row = np.zeros(len(call.base), np.uint32)
    return PbmPlan(call.base, items_of(call, n_items), np.zeros(n_items), row)


def best_guess(evidence: Any, plan: PbmPlan) -> Ints:
    """The ranking by clicks divided by mass; items that were never shown come last."""
    displays: Displays = evidence.displays
    clicks, known = displays.clicked.sum(axis=1), displays.mass > 0
    rates = np.where(known, clicks / np.where(known, displays.mass, 1.0), -1.0)
    return ranked(rates, plan.present, displays.places)
