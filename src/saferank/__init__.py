"""saferank: safe online re-ranking.

from saferank import Ranker, decision_rule

Names are loaded when they are first used, so that ``saferank.client`` alone loads no numpy and no compiler.
"""

from typing import TYPE_CHECKING, Any

from saferank._version import __version__

if TYPE_CHECKING:
    from saferank.page import Page
    from saferank.ranker import Ranker, RankerError
    from saferank.saved_state import SavedStateError
    from saferank.statistics.decision import decision_rule

__all__ = ["Page", "Ranker", "RankerError", "SavedStateError", "__version__", "decision_rule"]

_HOMES = {
    "Page": "saferank.page",
    "Ranker": "saferank.ranker",
    "RankerError": "saferank.ranker",
    "SavedStateError": "saferank.saved_state",
    "decision_rule": "saferank.statistics.decision",
}


def __getattr__(name: str) -> Any:
    """Load what ``__all__`` promises at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
