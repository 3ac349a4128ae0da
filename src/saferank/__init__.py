"""saferank: safe online re-ranking.

    from saferank import Ranker, decision_rule                         # one live ranking
    from saferank import simulate, Instance, load_instances, embedded_instances  # experiments
    from saferank import fit, reproduce, report                        # from a click log to a report
    from saferank import forecast                                      # what it would bring on your own log
    saferank.policies, saferank.click_models                           # what there is, and how to add to it

Names are loaded when they are first used. ``simulate``, ``reproduce``, ``report``, ``forecast`` and the errors import
neither numpy nor the compiler until they are called; the other names import both.
"""

from typing import TYPE_CHECKING, Any

from saferank._version import __version__

if TYPE_CHECKING:
    from saferank import click_models, policies
    from saferank.errors import ArgumentError, OutputError, RunInterrupted, UsageError
    from saferank.experiments.results import Results
    from saferank.experiments.simulate import simulate
    from saferank.fitting.fit import Fit, fit
    from saferank.forecasting.forecast import forecast
    from saferank.forecasting.outcome import Forecast
    from saferank.instances import Instance, embedded_instances, load_instances
    from saferank.live.page import Page
    from saferank.live.ranker import Ranker, RankerError
    from saferank.reporting.report import report
    from saferank.reproduction.reproduce import Reproduction, reproduce
    from saferank.saved_state import SavedStateError
    from saferank.statistics.decision import decision_rule

__all__ = [
    "ArgumentError", "Fit", "Forecast", "Instance", "OutputError", "Page", "Ranker", "RankerError", "Reproduction",
    "Results", "RunInterrupted", "SavedStateError", "UsageError", "__version__", "click_models", "decision_rule",
    "embedded_instances", "fit", "forecast", "load_instances", "policies", "report", "reproduce", "simulate",
]  # fmt: skip

_HOMES = {
    "ArgumentError": "saferank.errors",
    "Fit": "saferank.fitting.fit",
    "Forecast": "saferank.forecasting.outcome",
    "Instance": "saferank.instances",
    "OutputError": "saferank.errors",
    "Page": "saferank.live.page",
    "Ranker": "saferank.live.ranker",
    "RankerError": "saferank.live.ranker",
    "Reproduction": "saferank.reproduction.reproduce",
    "Results": "saferank.experiments.results",
    "RunInterrupted": "saferank.errors",
    "SavedStateError": "saferank.saved_state",
    "UsageError": "saferank.errors",
    "decision_rule": "saferank.statistics.decision",
    "embedded_instances": "saferank.instances",
    "fit": "saferank.fitting.fit",
    "forecast": "saferank.forecasting.forecast",
    "load_instances": "saferank.instances",
    "report": "saferank.reporting.report",
    "reproduce": "saferank.reproduction.reproduce",
    "simulate": "saferank.experiments.simulate",
}
_PACKAGES = ("checks", "click_models", "errors", "fitting", "instances", "logs", "policies", "randomness", "verbs")


def __getattr__(name: str) -> Any:
    """Load what ``__all__`` promises at its first use."""
    from importlib import import_module

    if name in _PACKAGES:
        return import_module(f"saferank.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    """What the documentation uses, and nothing else."""
    return sorted({*__all__, *_PACKAGES})
