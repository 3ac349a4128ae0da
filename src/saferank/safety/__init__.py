"""The safety constraint of the paper, and when a page violates it.

Better means more attractive, and what certifies are comparisons that are fair coins between equally attractive items.
They are under PBM, CM, DCM, UBM and CCM. Under DBN with unequal satisfaction they are not, for any policy here: an item
that satisfies ends the visit and takes clicks from the items below it. Under CCM items of unequal attraction can break
the bets of safe-draw. There certificates may be wrong at any rate, and the guarantees of the policies do not hold
(docs/algorithms/safety.md).
"""

from saferank.safety.constraint import Judge, allowance, judge_of, violates, whole_allowance, wrong_pairs

__all__ = ["Judge", "allowance", "judge_of", "violates", "whole_allowance", "wrong_pairs"]
