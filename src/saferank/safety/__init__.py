"""The safety constraint of the paper, and who breaks it."""

from saferank.safety.constraint import Judge, allowance, judge_of, violates, wrong_pairs

__all__ = ["Judge", "allowance", "judge_of", "violates", "wrong_pairs"]
