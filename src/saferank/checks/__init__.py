"""The contracts of plug-ins as callable checks. Each raises a ``ContractError``: a sentence on what is wrong.

``check_policy`` and ``check_click_model`` check what they are given; ``plugin.py`` does that for callers that play a
plug-in, once per process and source.
"""

from saferank.checks.click_model import check_click_model
from saferank.checks.contract import ContractError
from saferank.checks.policy import check_policy
from saferank.checks.servable import check_servable

__all__ = ["ContractError", "check_click_model", "check_policy", "check_servable"]
