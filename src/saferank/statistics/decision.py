"""Decision rules: when a pair of items is decided.

A rule says for every n how large a lead ``s = wins - losses`` must be. For whole numbers ``s > x`` means
``s >= floor(x) + 1``, so a rule is a table of whole numbers by n, extended on demand; kernels see only the table.

* ``paper:DELTA``: ``s > 2 sqrt(n log(1/delta))``.
* ``anytime:ALPHA``: with w wins and l losses, and the prior Beta(10, 10) cut to p > 1/2,
  ``M = 2^n B(10+w, 10+l) [1 - I_1/2(10+w, 10+l)] / (B(10,10)/2) >= 1/alpha``. Under every p <= 1/2 the process M is a
  non-negative supermartingale, so the chance of *ever* deciding a pair wrongly is at most alpha (Ville's inequality),
  whatever the horizon.
* ``budget:ALPHA``: the same, with an even share of alpha for each of the n (n - 1) / 2 pairs of n items. Of a pair of
  unequal items only one decision can be wrong, so the chance of ever deciding *any* pair wrongly is at most alpha.
* TopRank's own: ``s >= sqrt(2 n log(3.43 sqrt(n) / delta))``. The constant is the published one; its formula
  4 sqrt(2/pi)/erf(sqrt 2) evaluates to 3.3437, which would decide a little earlier.
"""

import functools
import math
import operator
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from saferank.errors import did_you_mean
from saferank.verbs import Floats, Ints

NEVER = np.iinfo(np.int64).max // 4
"""A lead that no pair reaches: what the table says at n = 0."""

FIRST_LENGTH = 4096
TOP_RANK_CONSTANT = 3.43


class DecisionRule(ABC):
    """A rule on (s, n). Equal names are equal rules."""

    kind: ClassVar[str]

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise ValueError(f"the level of a decision rule must lie between 0 and 1, not {level!r}")
        self.level = level
        self._table = np.full(1, NEVER, np.int64)
        self._extending = threading.Lock()

    def for_items(self, n_items: int) -> "DecisionRule":
        """The rule for a catalogue of this size: itself, unless it is about all pairs together."""
        return self

    @abstractmethod
    def _leads(self, n: Ints) -> Ints:
        """The lead needed at each n >= 1."""

    def table(self, largest_n: int) -> Ints:
        """The lead needed for n = 0, 1, ..., at least ``largest_n``: a shared array, not to be written."""
        with self._extending:
            known = len(self._table)
            if largest_n >= known:
                length = max(FIRST_LENGTH, 1 << (largest_n + 1).bit_length())
                leads = self._leads(np.arange(known, length))
                self._table = np.concatenate([self._table, leads])
                self._table.flags.writeable = False
            return self._table

    def decides(self, s: int, n: int) -> bool:
        """True when a lead of ``s`` in ``n`` informative comparisons decides the pair.

        >>> decision_rule("paper:1e-5").decides(47, 47), decision_rule("paper:1e-5").decides(46, 46)
        (True, False)
        """
        try:
            s, n = operator.index(s), operator.index(n)
        except TypeError:
            raise ValueError(f"s and n are whole numbers, not {s!r} and {n!r}") from None
        if n < 0 or abs(s) > n or (s + n) % 2:
            raise ValueError(f"impossible duel: s={s}, n={n}; |s| is at most n and s + n is even")
        known = self._table
        return bool(s >= (known[n] if n < len(known) else self._leads(np.array([n]))[0]))

    @property
    def name(self) -> str:
        """Kind and level; what ``decision_rule`` understands, for the rules that can be chosen."""
        return f"{self.kind}:{self.level!r}".replace("e-0", "e-")

    def __repr__(self) -> str:
        return f"decision_rule({self.name!r})"


class PaperRule(DecisionRule):
    """The paper's rule: s > 2 sqrt(n log(1/delta))."""

    kind = "paper"

    def _leads(self, n: Ints) -> Ints:
        return np.asarray(np.floor(2 * np.sqrt(n * -math.log(self.level))), np.int64) + 1


class AnytimeRule(DecisionRule):
    """The boundary of a Beta mixture martingale: wrong with probability at most alpha over all time."""

    kind = "anytime"
    prior = 10.0

    @property
    def level_of_pair(self) -> float:
        """The error of a pair."""
        return self.level

    def _log_martingale(self, s: Floats, n: Floats) -> Floats:
        from scipy.special import betainc, betaln

        a = self.prior + (n + s) / 2
        b = self.prior + (n - s) / 2
        above_half = np.log(betainc(b, a, 0.5))  # 1 - I_1/2(a, b)
        constant = math.log(2) - betaln(self.prior, self.prior)
        return np.asarray(n * math.log(2) + betaln(a, b) + above_half + constant)

    def _leads(self, n: Ints) -> Ints:
        """The smallest s of the parity of n that reaches 1/alpha, by bisection on all n at once."""
        no, yes = np.floor(n / 2).astype(np.int64), n + 1  # wins that are too few; wins that are enough
        target = -math.log(self.level_of_pair)
        while np.any(yes - no > 1):
            wins = (no + yes) // 2
            enough = self._log_martingale((2 * wins - n).astype(float), n.astype(float)) >= target
            yes, no = np.where(enough, wins, yes), np.where(enough, no, wins)
        return np.asarray(np.where(yes > n, NEVER, 2 * yes - n))


class BudgetRule(AnytimeRule):
    """All pairs of a catalogue together are wrong with probability at most alpha over all time."""

    kind = "budget"

    def __init__(self, level: float, n_items: int = 2) -> None:
        super().__init__(level)
        self.n_items = n_items

    def for_items(self, n_items: int) -> DecisionRule:
        """The rule for this number of items; until it is asked for, there are two."""
        return _shared_rule(BudgetRule, self.level, n_items)

    @property
    def level_of_pair(self) -> float:
        """An even share of alpha."""
        return self.level / max(1, self.n_items * (self.n_items - 1) // 2)


class TopRankRule(DecisionRule):
    """TopRank's rule: s >= sqrt(2 n log(3.43 sqrt(n) / delta))."""

    kind = "top-rank"

    def _leads(self, n: Ints) -> Ints:
        logarithm = np.log(TOP_RANK_CONSTANT * np.sqrt(n)) - math.log(self.level)  # 1 / delta may overflow
        return np.asarray(np.ceil(np.sqrt(2 * n * logarithm)), np.int64)


RULES: dict[str, type[DecisionRule]] = {rule.kind: rule for rule in (PaperRule, AnytimeRule, BudgetRule)}


def decision_rule(name: str, horizon: int | None = None) -> DecisionRule:
    """The rule called ``paper:DELTA``, ``anytime:ALPHA`` or ``budget:ALPHA``; ``1/T`` stands for one over the horizon.

    Args:
        name: Kind and level of the rule, like ``anytime:1e-5``.
        horizon: Number of rounds; needed for the level ``1/T`` only.

    Returns:
        The rule; ``decides(s, n)`` tells whether a lead of s in n comparisons is enough.

    Raises:
        ValueError: The kind is unknown, the level is not between 0 and 1, or ``1/T`` has no horizon.

    >>> decision_rule("anytime:1e-3").decides(23, 23)
    True
    >>> decision_rule("paper:1/T", horizon=1000).level
    0.001
    >>> decision_rule("budget:0.045").for_items(10).decides(23, 23)
    True

    """
    kind, colon, level = str(name).partition(":")
    if kind not in RULES or not colon:
        known = "paper:DELTA, anytime:ALPHA or budget:ALPHA"
        raise ValueError(
            f"unknown decision rule {name!r}; write {known}, for example paper:1e-5{did_you_mean(kind, RULES)}"
        )
    if level == "1/T":
        if horizon is None:
            raise ValueError(f"{name!r} needs a horizon; give a number instead, for example {kind}:1e-5")
        return _shared_rule(RULES[kind], 1 / max(2, whole_horizon(horizon)))
    try:
        number = float(level)
    except ValueError:
        raise ValueError(f"the level of decision rule {name!r} is not a number") from None
    if not 0 < number < 1:
        raise ValueError(f"the level of decision rule {name!r} must lie between 0 and 1")
    return _shared_rule(RULES[kind], number)


def whole_horizon(horizon: int) -> int:
    """A horizon: a whole number of rounds, at least 1."""
    try:
        rounds = operator.index(horizon)
    except TypeError:
        raise ValueError(f"the horizon is a number of rounds, not {horizon!r}") from None
    if rounds < 1:
        raise ValueError(f"the horizon must be at least 1 round, not {rounds}")
    return rounds


def top_rank_rule(delta: float) -> DecisionRule:
    """TopRank's confidence rule at ``delta``."""
    return _shared_rule(TopRankRule, delta)


@functools.lru_cache(maxsize=256)
def _shared_rule(kind: Callable[..., DecisionRule], level: float, *size: int) -> DecisionRule:
    return kind(level, *size)
