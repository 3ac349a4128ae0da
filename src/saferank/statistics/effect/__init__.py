"""Served pages beside a holdout: differences that are valid at every look, and the guardrail built on them.

``comparison.py`` folds counted pages into ten numbers, ``stakes.py`` turns their sums into evidence, ``intervals.py``
gives confidence sequences, ``guardrail.py`` says when to stop. Method, assumptions and proof:
docs/engineers/effect.md. Plain Python and numpy; may import ``errors`` and ``verbs``.
"""

from saferank.statistics.effect.comparison import Arm, ArmComparison, from_numbers, merged, new_comparison, with_page
from saferank.statistics.effect.guardrail import Guardrail
from saferank.statistics.effect.intervals import Interval, difference, relative_difference

__all__ = [
    "Arm", "ArmComparison", "Guardrail", "Interval", "difference", "from_numbers", "merged", "new_comparison",
    "relative_difference", "with_page",
]  # fmt: skip
