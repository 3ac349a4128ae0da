"""The safety constraint of the paper, who breaks it, and what a page may spend."""

from saferank.safety.budget import Budget, Price, price_of_page, whole_allowance
from saferank.safety.constraint import Judge, allowance, judge_of, violates, wrong_pairs

__all__ = [
    "Budget",
    "Judge",
    "Price",
    "allowance",
    "judge_of",
    "price_of_page",
    "violates",
    "whole_allowance",
    "wrong_pairs",
]
