"""Plug-ins are checked once per process and source, and the package's own policies never."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.checks import plugin
from saferank.checks.plugin import check_plugin_model, check_plugin_policy
from saferank.click_models import CM
from saferank.click_models.shapes import PerItem
from saferank.policies import POLICIES
from saferank.verbs import choose, click, expected_clicks, implements
from tests.checks.test_click_model import ATTRACTION, independent_clicks, total_attraction
from tests.checks.test_policy import broken


class Clicked(NamedTuple):
    attraction: PerItem


implements(click, Clicked)(independent_clicks)
implements(expected_clicks, Clicked)(total_attraction)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was checked, in order; nothing really is."""
    seen: list[Any] = []
    monkeypatch.setattr(plugin, "_passed", {})
    monkeypatch.setattr(plugin, "check_policy", lambda kind, compiled: seen.append((kind.name, compiled)))
    monkeypatch.setattr(plugin, "check_click_model", lambda model, n_positions: seen.append(type(model).__name__))
    return seen


def test_a_policy_is_checked_once_and_again_when_a_verb_changes(checked: list[Any]) -> None:
    kind = broken()
    for _ in range(3):
        check_plugin_policy(kind, compiled=False)
    assert checked == [("broken", False)]
    check_plugin_policy(kind)
    check_plugin_policy(kind, compiled=False)
    assert checked == [("broken", False), ("broken", True)]
    implements(choose, kind.policy)(lambda policy, state, rng, impression: None)
    check_plugin_policy(kind)
    assert len(checked) == 3


def test_our_own_are_not_checked(checked: list[Any]) -> None:
    for kind in POLICIES.values():
        if kind.policy.__module__.startswith("saferank."):
            check_plugin_policy(kind)
    check_plugin_model(CM(np.array([0.5])))
    assert checked == []


def test_a_click_model_is_checked_once_but_its_numbers_always(checked: list[Any]) -> None:
    check_plugin_model(Clicked(ATTRACTION))
    check_plugin_model(Clicked(ATTRACTION))
    assert checked == ["Clicked"]
    with pytest.raises(
        AssertionError, match=r"attraction of Clicked holds \[1\.5\], which is no probability: give numbers"
    ):
        check_plugin_model(Clicked(np.array([0.5, 1.5])))
    with pytest.raises(AssertionError, match=r"attraction of Clicked holds \[nan\]"):
        check_plugin_model(Clicked(np.array([np.nan])))
