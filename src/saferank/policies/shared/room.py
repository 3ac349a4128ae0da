"""Room to learn: kernels never allocate, so between pages Python gives a state what the next page might need.

Three things grow: the table of pairs with the pairs that met, the table of leaders with the leaders that were, and
the table of the decision rule with the largest n. ``has_room`` is asked before every page, in compiled code.
"""

import functools
from typing import Any

from saferank._kernel import kernel, verb
from saferank.policies.registry import PolicyKind, Setup
from saferank.statistics.duels import Duels, LifetimeDuels, crowded, with_room
from saferank.statistics.leaders import leaders_full, with_more_leaders
from saferank.statistics.pairs import most_fought

_AHEAD = 1024
"""A live ranker's table of the rule reaches at least so far beyond the largest n."""

_FAR_AHEAD = 1 << 16
"""A simulated one, which knows its horizon, saves itself most interruptions."""


@functools.partial(verb, default=True)
def has_room(policy: Any, state: Any) -> bool:
    """True when one more page can be learnt without anything growing."""
    return True


@kernel
def duels_have_room(state: Any, new_pairs: int) -> bool:
    """True when the pairs of one more page fit, and their n stays inside the rule's table.

    A page adds at most one to the n of a pair, so the table is long enough until ``horizon`` pages are learnt.
    """
    return state.learned[0] < state.horizon[0] and not crowded(state.duels, new_pairs)


def make_room(kind: PolicyKind, setup: Setup, policy: Any, state: Any) -> tuple[Any, Any]:
    """Policy and state with room for more, their contents unchanged."""
    if kind.grow is not None:
        return policy, kind.grow(state)
    grows = hasattr(state, "duels") and isinstance(state.duels, Duels | LifetimeDuels)
    if grows and crowded(state.duels, setup.n_positions + 1):
        state = state._replace(duels=with_room(state.duels, setup.n_positions + 1))
    if hasattr(state, "leaders") and leaders_full(state.leaders):
        state = state._replace(leaders=with_more_leaders(state.leaders))
    if kind.rule is not None and hasattr(policy, "lead_needed"):
        most = most_fought(state.duels)
        ahead = _AHEAD if setup.horizon is None else min(setup.horizon, _FAR_AHEAD)
        policy = policy._replace(lead_needed=kind.rule(setup).table(most + ahead))
        state.horizon[0] = state.learned[0] + len(policy.lead_needed) - 1 - most
    return policy, state
