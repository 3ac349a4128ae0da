"""The notebooks of docs/notebooks run from top to bottom, cell by cell, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def run(notebook: Path) -> list[list[str]]:
    """Number, type and length of what each cell shows."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-W", "error", str(FOLDER.parent / "notebook_pages.py"), str(notebook)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["add_a_policy", "experiment_in_small"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_a_table_a_plot_and_a_comparison(notebook: Path) -> None:
    shown = run(notebook)
    assert {"Results", "Plot", "Comparison"} <= {kind for _, kind, _ in shown}
    assert all(int(length) > 20 for _, _, length in shown)
