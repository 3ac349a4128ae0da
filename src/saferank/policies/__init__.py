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
from saferank.policies.shared.bubble import ContradictionError
from saferank.policies.shared.epochs import advance
from saferank.policies.shared.issuing import count_issued, freeze, shows_one_page
from saferank.policies.shared.room import has_room, make_room

__all__ = [
    "POLICIES", "ContradictionError", "Look", "Outlook", "PolicyKind", "Presentation", "Servable", "Setup",
    "TooManyItemsError", "WrongRuleError", "advance", "count_issued", "freeze", "has_room", "make_room",
    "policies_of", "policy_kind", "register", "shows_one_page",
]  # fmt: skip

for _module in pkgutil.iter_modules(__path__):  # every file registers its policy when it is imported
    importlib.import_module(f"{__name__}.{_module.name}")
