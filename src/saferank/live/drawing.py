"""What a policy that draws pages from a known law says of itself: its bets.

Such a policy certifies a pair when the capital of a bet reaches 1/alpha (``statistics/bets.py``). Wins and losses say
little about it, because the odds differ from page to page.
"""

import math
from dataclasses import dataclass
from typing import Any

from saferank.statistics.bets import CURRENT, PREVIOUS, SOFT, BetTable, entry_of, needed_for
from saferank.statistics.pairs import row_of
from saferank.verbs import Floats


@dataclass(frozen=True)
class Evidence:
    """What speaks for the upper item of a pair: the capital of the bet on it, which began at 1."""

    capital: float
    needed: float  # 1/alpha: the capital that certifies

    def __str__(self) -> str:
        return f"evidence {_rounded(self.capital)} of {_rounded(self.needed)} needed"


def draws(policy: Any) -> bool:
    """True for a policy that bets on pages drawn from a known law."""
    return isinstance(getattr(policy, "table", None), BetTable)


def evidence_for(policy: Any, evidence: Any, i: int, j: int) -> Evidence:
    """The evidence that i is better than j; with a lifetime that of the stream which is nearer to a certificate."""
    table, bets = policy.table, evidence.duels
    row, side = int(row_of(bets, i, j)), int(i > j)
    kinds = (CURRENT, PREVIOUS) if bets.kinds[0] > 1 else (SOFT,)
    capitals = [bets.capital[entry_of(bets, row, kind, side)] for kind in kinds]
    return Evidence(max(_capital(table, capital) for capital in capitals), _mean(table, needed_for(table, i, j)))


def _capital(table: BetTable, logarithms: Floats) -> float:
    """The mean over the stakes, from the logarithms of their capital."""
    highest = float(logarithms.max())
    total = sum(math.exp(value - highest) for value in logarithms.tolist())
    return _mean(table, highest + math.log(total))


def _mean(table: BetTable, logarithm: float) -> float:
    """The mean of stakes whose sum has this logarithm, at most the largest that a float can hold."""
    return math.exp(min(float(logarithm) - math.log(len(table.stakes)), 709.0))


def _rounded(number: float) -> str:
    """A number as people read it.

    >>> _rounded(1e5), _rounded(12.34), _rounded(0.0123), _rounded(1e300)
    ('100,000', '12', '0.012', '1e+300')
    """
    if number >= 1e15:
        return f"{number:.2g}"
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
