"""A click needs two heads: the position was examined and the item attracts. PBM and UBM share this E-step.

With attraction a and examination e, a click shows both coins. Without one, the coins fell in one of three ways, of total
probability 1 - a e, so the expected heads are a (1 - e) / (1 - a e) of attraction and e (1 - a) / (1 - a e) of
examination. Both coins are tossed at every position: clicks are independent given the examination probabilities.
"""

from saferank._kernel import kernel
from saferank.fitting.coins import Tally


@kernel
def toss_both(tally: Tally, pair: int, position: int, clicked: bool, weight: float, chances: tuple[float, float]) -> None:
    """Count the attraction coin ``pair`` and the examination coin ``position``; ``chances`` are their (a, e)."""
    a, e = chances
    missed = 1.0 - a * e
    tally.heads[pair] += weight if clicked else weight * (a * (1.0 - e) / missed)
    tally.heads[position] += weight if clicked else weight * (e * (1.0 - a) / missed)
    tally.tosses[pair] += weight
    tally.tosses[position] += weight
