"""One published algorithm per file, found by itself; the registry of their names; ``shared/`` for what several use.

May import statistics, safety and the verbs; knows no files, no clocks and no click models.
"""

import importlib
import pkgutil

from saferank.policies.registry import (
    POLICIES,
    Look,
    Outlook,
    PolicyKind,
    Presentation,
    Servable,
    Setup,
    TooManyItemsError,
    WrongRuleError,
    policies_of,
    policy_kind,
    register,
)
from saferank.policies.shared.room import make_room, make_room_in_plan

__all__ = [
    "POLICIES", "Look", "Outlook", "PolicyKind", "Presentation", "Servable", "Setup", "TooManyItemsError",
    "WrongRuleError", "make_room", "make_room_in_plan", "policies_of", "policy_kind", "register",
]  # fmt: skip

for _module in pkgutil.iter_modules(__path__):  # every file registers its policy when it is imported
    importlib.import_module(f"{__name__}.{_module.name}")
