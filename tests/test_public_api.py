"""``import saferank``: everything that it promises is there, typed, documented, and in the documentation."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import saferank

PAGE = Path(__file__).parents[1] / "docs" / "researchers" / "library.md"


@pytest.mark.parametrize("name", [name for name in saferank.__all__ if name != "__version__"])
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(saferank, name)
    assert inspect.getdoc(value)
    assert name in dir(saferank)
    assert f"`{name}" in PAGE.read_text(encoding="utf-8")


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        _ = saferank.simulat


def test_functions_are_typed_and_take_what_a_user_gives() -> None:
    for function in (saferank.simulate, saferank.fit, saferank.reproduce, saferank.report, saferank.forecast):
        parameters = inspect.signature(function).parameters
        assert all(p.annotation is not p.empty for p in parameters.values())
        assert "command" not in parameters  # how results say who made them is no matter of the caller


def test_dir_offers_what_the_documentation_uses() -> None:
    offered = set(dir(saferank))
    assert all(name == "__version__" or not name.startswith("_") for name in offered)
    assert not {"Any", "TYPE_CHECKING"} & offered
    assert all(getattr(saferank, name) is not None for name in offered)
    pages = [*(PAGE.parents[1]).rglob("*.md")]
    for package in ("checks", "policies", "randomness", "verbs", "click_models", "instances"):
        assert package in offered and any(f"saferank.{package}" in page.read_text("utf-8") for page in pages)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"policies": ["klucb-br"]}, "; did you mean 'kl-ucb-br'?"),
        ({"rule": "papper:1e-3"}, "; did you mean 'paper'?"),
        ({"models": ["pmb"]}, "; did you mean 'pbm'?"),
    ],
)
def test_a_slip_is_named(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(saferank.ArgumentError, match=re.escape(sentence)):
        saferank.simulate(rounds=10, repetitions=1, **given)


LIGHT = ("simulate", "reproduce", "report", "forecast", "ArgumentError", "OutputError", "RunInterrupted", "UsageError")


def test_what_the_package_says_is_light_loads_no_numpy() -> None:
    """As the docstring of the package says it."""
    code = (
        f"import sys; from saferank import {', '.join(LIGHT)}; print(sorted({{'numpy', 'numba'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    documented = inspect.getdoc(saferank) or ""
    assert all(f"``{name}``" in documented for name in LIGHT if name.islower())
