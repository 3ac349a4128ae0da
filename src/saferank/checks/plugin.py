"""Plug-ins are checked before they are played: once per process and source, and never the package's own code."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from saferank._kernel import implemented, is_foreign
from saferank.checks.click_model import check_click_model, check_probabilities
from saferank.checks.contract import ContractError
from saferank.checks.policy import check_policy, is_plugin
from saferank.click_models import CLICK_MODELS
from saferank.errors import ArgumentError
from saferank.plugins import home_of, load_plugins
from saferank.policies import POLICIES, PolicyKind
from saferank.verbs import choose, click, expected_clicks, learn

_passed: dict[tuple[int, ...], tuple[Any, ...]] = {}
"""What has passed, by identity; the objects are kept, so that no other one gets the identity of one that is gone."""


def check_plugin_policy(kind: PolicyKind, *, compiled: bool = True) -> None:
    """A ``ContractError`` when a policy of a plug-in breaks its contract. A policy of the package is not looked at.

    Without ``compiled`` it is played interpreted only, for a caller that compiles it anyway and compares.
    """
    if is_plugin(kind):
        source = (kind, implemented(choose, kind.policy), implemented(learn, kind.policy))
        if not {_identity(*source, compiled), _identity(*source, True)} & _passed.keys():
            check_policy(kind, compiled=compiled)
            _passed[_identity(*source, compiled)] = source


def check_plugin_model(model: Any, n_positions: int = 5) -> None:
    """The same for a click model with these parameters; all models of one class are checked by the first one."""
    if is_foreign(type(model)):
        check_probabilities(model)
        source = (type(model), implemented(click, type(model)), implemented(expected_clicks, type(model)))
        if _identity(*source) not in _passed:
            check_click_model(model, n_positions)
            _passed[_identity(*source)] = source


def load_checked_plugins(names: Iterable[str], *, compiled: bool = False) -> None:
    """Import plug-ins and check every policy that they register; what is wrong is an ``ArgumentError``.

    Click models are checked when they are played, with the parameters that they are played with.
    """
    listed = list(names)
    before = {**POLICIES, **CLICK_MODELS} if listed else {}
    for name, module in zip(listed, load_plugins(listed), strict=True):
        mine = [kind for kind in POLICIES.values() if _is_from(kind, module) or before.get(kind.name) is not kind]
        models = [kind for kind in CLICK_MODELS.values() if _home_is(kind, module) or kind not in before.values()]
        if not mine and not models:
            fix = 'call register("name", ...) of saferank.policies or saferank.click_models at its end'
            raise ArgumentError("plugin", f"{name}: registers neither a policy nor a click model; {fix}")
        with as_argument_error():
            for kind in mine:
                check_plugin_policy(kind, compiled=compiled)


@contextmanager
def as_argument_error() -> Iterator[None]:
    """Turn a ``ContractError`` inside into an ``ArgumentError`` about the plug-in."""
    try:
        yield
    except ContractError as problem:
        raise ArgumentError("plugin", str(problem)) from problem


def _is_from(kind: PolicyKind, module: str) -> bool:
    return _home_is(kind.policy, module) or _home_is(home_of(kind.start), module)


def _home_is(part: Any, module: str) -> bool:
    home: str = part.__module__
    return home == module or home.startswith(f"{module}.")


def _identity(*source: Any) -> tuple[int, ...]:
    return tuple(map(id, source))
