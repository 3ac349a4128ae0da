"""The account of safe-blocks and safe-order: what the allowance and certified swaps let a page spend.

Three numbers: the allowance floor(L - K/2), the certified swaps since the reference, and the number L - K of unranked
items.
"""

from typing import Any

import numpy as np

from saferank.safety import Budget, whole_allowance
from saferank.statistics.tournament import ABSENT
from saferank.verbs import Flags, Ints


def new_account(n_items: int, n_positions: int, income: int = 0) -> Ints:
    """The account of a policy that has seen ``income`` certified swaps."""
    return np.array([whole_allowance(n_items, n_positions), income, n_items - n_positions], np.int64)


def regrouped_account(state: Any, n_positions: int, present: Flags) -> Ints:
    """For other items. New ones leave the income as it is; when one leaves, the leader becomes the reference anew.

    Why: docs/policies/safe-blocks.md, "What changes live".
    """
    were_here = state.standing != ABSENT
    only_added = bool(np.all(present[: len(were_here)] >= were_here))
    return new_account(int(present.sum()), n_positions, int(state.account[1]) if only_added else 0)


def budget_of(state: Any) -> Budget:
    """The account for people."""
    return Budget(int(state.account[0]), int(state.account[1]))
