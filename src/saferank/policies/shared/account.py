"""The account of safe-blocks and safe-order: what the allowance and certified swaps let a page spend.

Three numbers: the allowance floor(L - K/2), the certified swaps since the reference, and the number L - K of unranked
items.
"""

from typing import Any

import numpy as np

from saferank.policies.shared.derivation import close_ranks, derived_leader
from saferank.policies.shared.epochs import rebased
from saferank.safety import Budget, whole_allowance
from saferank.statistics.lifetimes import LifetimeDuels
from saferank.statistics.tournament import ABSENT
from saferank.verbs import Flags, Ints, Items


def new_account(n_items: int, n_positions: int, income: int = 0) -> Ints:
    """The account of a policy that has seen ``income`` certified swaps."""
    return np.array([whole_allowance(n_items, n_positions), income, n_items - n_positions], np.int64)


def regrouped_leader(policy: Any, state: Any, leader: Items, present: Flags, distant: bool) -> tuple[Items, Ints]:
    """Leader and account for other items.

    The reference is production's ranking without the absent items, closed up. While it stays the same and no item
    leaves, the leader and its income stay. Otherwise both are derived again: a certified pair of which one item is gone
    no longer pays for what was exchanged because of it. ``state.duels`` must have room for all items.

    Why: docs/policies/safe-blocks.md, "What changes live".
    """
    if isinstance(state.duels, LifetimeDuels):
        leader, income = rebased(policy, state, present)
        return leader, new_account(int(present.sum()), len(leader), income)
    were_here = np.append(state.standing != ABSENT, np.zeros(len(present) - len(state.standing), np.bool_))
    base = np.arange(len(leader))  # the original ranking has the first numbers
    reference = close_ranks(base, present)
    income = int(state.account[1])
    if np.any(were_here > present) or not np.array_equal(reference, close_ranks(base, were_here)):
        leader, income = derived_leader(policy, state, reference, present, distant)
    return leader, new_account(int(present.sum()), len(leader), income)


def rebased_leader(policy: Any, state: Any, base: Items, distant: bool) -> tuple[Items, Ints]:
    """Leader and account when production's ranking is ``base``, all of whose items are present."""
    present = state.standing != ABSENT
    if isinstance(state.duels, LifetimeDuels):
        leader, income = rebased(policy, state, present, base)
    else:
        leader, income = derived_leader(policy, state, base, present, distant)
    return leader, new_account(int(present.sum()), len(base), income)


def budget_of(state: Any) -> Budget:
    """The account for people."""
    return Budget(int(state.account[0]), int(state.account[1]))
