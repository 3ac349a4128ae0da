"""Which pairs of a large catalogue need not be compared any more, and how far apart they may be drawn.

Without a lifetime whatever is certified is settled. With one, only a certificate of this epoch is: one that is held
over has to be earned again. And no pair is drawn so far apart that a change of the world would go unseen.
"""

import functools
from typing import Any

from saferank._kernel import implements, verb
from saferank.statistics.closure import Closure, surely
from saferank.statistics.lifetime_bets import LifetimeBets, is_fresh


@functools.partial(verb, default=True)
def is_settled(duels: Any, closure: Closure, i: int, j: int) -> bool:
    """True when i is certified over j and need not be compared with it."""
    return surely(closure, i, j)


@functools.partial(verb, default=True)
def largest_gap(duels: Any) -> float:
    """The largest gap between neighbours of an order; without a lifetime, only so that no weight underflows."""
    return 12.0


@implements(is_settled, LifetimeBets)
def _is_settled(duels: LifetimeBets, closure: Closure, i: int, j: int) -> bool:
    return is_fresh(duels, i, j)


@implements(largest_gap, LifetimeBets)
def _largest_gap(duels: LifetimeBets) -> float:
    return 5.0
