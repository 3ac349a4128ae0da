"""A click needs two heads: the position was examined and the item attracts. PBM and UBM share this E-step.

With attraction a and examination e, a click shows both coins. Without one, the coins fell in one of three ways, of
total probability 1 - a e, so the expected heads are a (1 - e) / (1 - a e) of attraction and e (1 - a) / (1 - a e) of
examination. Both coins are tossed at every position: clicks are independent given the examination probabilities.
"""

from saferank._kernel import kernel
from saferank.fitting.coins import CoinCounts, add


@kernel
def toss_both(
    tally: CoinCounts, coins: tuple[int, int], chances: tuple[float, float], clicked: bool, weight: float
) -> None:
    """Count the coins of attraction and examination, which fall on heads with ``chances`` (a, e)."""
    (pair, position), (a, e) = coins, chances
    missed = 1.0 - a * e
    add(tally, pair, weight if clicked else weight * (a * (1.0 - e) / missed), weight)
    add(tally, position, weight if clicked else weight * (e * (1.0 - a) / missed), weight)
