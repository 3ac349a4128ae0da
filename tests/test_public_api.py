"""``import saferank``: everything that it promises is there, typed, documented, and in the documentation."""

import inspect
import subprocess
import sys
from pathlib import Path

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


def test_functions_are_typed() -> None:
    for function in (saferank.simulate, saferank.fit, saferank.reproduce, saferank.report):
        assert all(p.annotation is not p.empty for p in inspect.signature(function).parameters.values())


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
