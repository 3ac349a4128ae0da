"""The contracts of plug-ins as callable checks. Each raises a ``ContractError``: a sentence on what is wrong."""

from saferank.checks.click_model import check_click_model
from saferank.checks.contract import ContractError
from saferank.checks.policy import check_policy

__all__ = ["ContractError", "check_click_model", "check_policy"]
