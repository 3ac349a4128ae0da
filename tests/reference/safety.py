"""Safety and the best reward (the specification's "Notation")."""

from collections.abc import Callable
from itertools import permutations


def wrong_pairs(shown: list[int], attraction: list[float]) -> int:
    """V(shown): pairs (better b, worse w) with w shown and b either shown below w or not shown."""
    count = 0
    for b in range(len(attraction)):
        for w in range(len(attraction)):
            better = attraction[b] > attraction[w]
            if better and w in shown and (b not in shown or shown.index(b) > shown.index(w)):
                count += 1
    return count


def violates(shown: list[int], original: list[int], attraction: list[float]) -> bool:
    """V(shown) > V(original) + L - K/2, a real number."""
    allowance = len(attraction) - len(original) / 2
    return wrong_pairs(shown, attraction) > wrong_pairs(original, attraction) + allowance


def best_reward(n_items: int, n_positions: int, reward: Callable[[list[int]], float]) -> float:
    """The maximum of the expected reward over all rankings of n_positions out of n_items items."""
    return max(reward(list(ranking)) for ranking in permutations(range(n_items), n_positions))
