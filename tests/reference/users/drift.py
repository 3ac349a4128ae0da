"""A drifting world, round by round: what the attractions are, and what comes of a run of a literal policy in it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.reference.safety import best_reward, violates
from tests.reference.users.click_models import expected_clicks

World = Callable[[int], list[float]]
"""The attractions of a round, rounds counting from 1."""


def original_optimal(attraction: list[float]) -> list[float]:
    """The same numbers, the largest at item 0, and so on."""
    return sorted(attraction, reverse=True)


def turned_round(attraction: list[float]) -> list[float]:
    """The same numbers: who had the largest has the smallest, and so on. No two are equal."""
    ascending = sorted(attraction)
    return [ascending[len(ascending) - 1 - ascending.index(value)] for value in attraction]


def step(attraction: list[float], first: int, target: list[float]) -> World:
    return lambda now: target if now >= first else attraction


def slow(attraction: list[float], first: int, last: int, target: list[float], steps: int) -> World:
    """After k of the steps the share of the target is k / steps; the first step is made in round ``first``, the last
    one in round ``last``, the others between at equal distances, rounded down.
    """
    at = [first + (last - first) * k // (steps - 1) for k in range(steps)]

    def now_is(now: int) -> list[float]:
        share = sum(1 for round_ in at if round_ <= now) / steps
        return [a * (1 - share) + b * share for a, b in zip(attraction, target, strict=True)]

    return now_is


def arrivals(attraction: list[float], arrive: dict[int, int], leave: dict[int, int]) -> World:
    def now_is(now: int) -> list[float]:
        there = [now >= arrive.get(item, 1) and now < leave.get(item, now + 1) for item in range(len(attraction))]
        return [value if here else 0.0 for value, here in zip(attraction, there, strict=True)]

    return now_is


def departures_every(attraction: list[float], n_positions: int, every: int) -> World:
    """After ``every`` rounds the first unranked item has left, after twice as many the second one too, and so on."""

    def now_is(now: int) -> list[float]:
        left = (now - 1) // every
        return [0.0 if n_positions <= item < n_positions + left else value for item, value in enumerate(attraction)]

    return now_is


def play(policy: Any, model: Any, world: World, users: Any, rounds: int) -> list[tuple[float, int, int, float, float]]:
    """Regret, violations, wrong certificates and clicks relative to the original's (of all pages, and of the worst one)
    after each round. Every page is compared with the original ranking in the world of its own round.

    A certificate is given when a pair is first decided in a direction, and wrong if its better item has the smaller
    attraction in that very round.
    """
    n_items, n_positions = policy.n_items, policy.n_positions
    best: dict[tuple[float, ...], float] = {}
    original = list(range(n_positions))
    regret, violations, wrong = 0.0, 0, 0
    earned, due, worst = 0.0, 0.0, float("inf")
    given: set[tuple[int, int]] = set()
    rows = []
    for now in range(1, rounds + 1):
        attraction = world(now)
        today = replace(model, attraction=attraction)
        if tuple(attraction) not in best:
            best[tuple(attraction)] = best_reward(n_items, n_positions, lambda shown: expected_clicks(today, shown))  # noqa: B023
        page = policy.show()
        policy.feedback(today.simulate(page.shown, users))
        clicks, clicks_of_original = expected_clicks(today, page.shown), expected_clicks(today, original)
        regret += best[tuple(attraction)] - clicks
        earned += clicks
        due += clicks_of_original
        worst = min(worst, clicks / clicks_of_original)
        violations += violates(page.shown, original, attraction)
        decided = {(i, j) for i in range(n_items) for j in range(n_items) if policy.beats(i, j)}
        wrong += sum(attraction[i] < attraction[j] for i, j in decided - given)
        given |= decided
        rows.append((regret, violations, wrong, earned / due, worst))
    return rows
