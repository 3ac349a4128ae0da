"""One published algorithm per file, and the registry of their names."""

from saferank.policies import bubble_rank as bubble_rank
from saferank.policies import kl_ucb_br as kl_ucb_br
from saferank.policies import original as original
from saferank.policies import safe_blocks as safe_blocks
from saferank.policies import safe_order as safe_order
from saferank.policies import top_rank as top_rank
from saferank.policies import uni_rank as uni_rank
from saferank.policies.bubble import ContradictionError
from saferank.policies.issuing import count_issued
from saferank.policies.registry import POLICIES, Outlook, PolicyKind, Setup, TooManyItemsError, policy_kind, register
from saferank.policies.room import has_room, make_room

__all__ = [
    "POLICIES", "ContradictionError", "Outlook", "PolicyKind", "Setup", "TooManyItemsError", "count_issued",
    "has_room", "make_room", "policy_kind", "register",
]  # fmt: skip
