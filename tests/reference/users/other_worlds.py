"""Late and lost feedback, a permuted screen and other rewards, page by page, with a policy that takes late answers."""

from itertools import product
from math import log2
from typing import Any

from tests.reference.randomness import Xoshiro
from tests.reference.safety import best_reward, violates
from tests.reference.users.click_models import expected_clicks


def fixed(pages: int) -> list[float]:
    """P(delay <= 0), P(delay <= 1), ... of a fixed delay."""
    return [0.0] * pages + [1.0]


def geometric(mean: float, most: int) -> list[float]:
    """The same of a geometric delay, P(delay > j) = (mean / (1 + mean))^(j + 1), cut at ``most``."""
    return [1.0 - (mean / (1.0 + mean)) ** (pages + 1) for pages in range(most)] + [1.0]


def dcg(model: Any, shown: list[int]) -> float:
    attraction: list[float] = model.attraction
    return sum(attraction[item] / log2(k + 2) for k, item in enumerate(shown))


def weighted(weights: list[float]) -> Any:
    """Every click vector with its probability; a click at k counts weights[k]."""

    def value(model: Any, shown: list[int]) -> float:
        total = 0.0
        for vector in product([0, 1], repeat=len(shown)):
            clicks = list(vector)
            total += model.probability_of(shown, clicks) * sum(w * c for w, c in zip(weights, clicks, strict=True))
        return total

    return value


def play(
    policy: Any,
    model: Any,
    users: Xoshiro,
    post: Xoshiro,
    rounds: int,
    delays: list[float],
    lost_pages: float = 0.0,
    lost_clicks: float = 0.0,
    layout: list[int] | None = None,
    reward: Any = expected_clicks,
) -> list[tuple[float, int, int, float, float]]:
    """Regret, violations, wrong certificates and reward relative to the original's after each round.

    ``layout[p]`` is the position (from 0) of the policy whose item stands at place p of the screen. Reward is that of
    the screen; violations are those of the page that the policy meant.
    """
    n_items, n_positions = policy.n_items, policy.n_positions
    places = list(range(n_positions)) if layout is None else layout
    original = list(range(n_positions))
    best = best_reward(n_items, n_positions, lambda shown: reward(model, shown))
    due_original = reward(model, [original[p] for p in places])
    arriving: dict[int, list[tuple[Any, list[int]]]] = {}
    regret, violations, wrong, earned, due, worst = 0.0, 0, 0, 0.0, 0.0, float("inf")
    given: set[tuple[int, int]] = set()
    rows = []
    for now in range(1, rounds + 1):
        page = policy.issue()
        screen = [page.shown[p] for p in places]
        on_screen = model.simulate(screen, users)
        clicks = [0] * n_positions
        for place, position in enumerate(places):
            clicks[position] = on_screen[place]
        # three kinds of words of the third stream: is the page lost, its delay, is each click lost
        lost = post.uniform() < lost_pages
        number = post.uniform()
        delay = next(pages for pages, at_most in enumerate(delays) if number < at_most)
        for position in range(n_positions):
            if post.uniform() < lost_clicks:
                clicks[position] = 0
        if not lost:
            arriving.setdefault(now + delay, []).append((page, clicks))
        for late, its_clicks in arriving.pop(now, []):
            policy.answer(late, its_clicks)
        value = reward(model, screen)
        regret += best - value
        earned += value
        due += due_original
        worst = min(worst, value / due_original)
        violations += violates(page.shown, original, model.attraction)
        decided = {(i, j) for i in range(n_items) for j in range(n_items) if policy.beats(i, j)}
        wrong += sum(model.attraction[i] < model.attraction[j] for i, j in decided - given)
        given |= decided
        rows.append((regret, violations, wrong, earned / due, worst))
    return rows
