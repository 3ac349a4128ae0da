"""saferank: safe online re-ranking.

from saferank import Ranker, decision_rule
"""

from saferank._version import __version__
from saferank.page import Page
from saferank.ranker import Ranker, RankerError
from saferank.saved_state import SavedStateError
from saferank.statistics.decision import decision_rule

__all__ = ["Page", "Ranker", "RankerError", "SavedStateError", "__version__", "decision_rule"]
