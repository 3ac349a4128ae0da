"""How tests call the command line: in this process, or in one of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import saferank
from saferank.cli import main

SMALL = ("--models", "pbm", "--queries", "1", "--rounds", "100", "--repetitions", "2", "--policies", "original")


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run a command in this process."""
    code = main([str(argument) for argument in arguments])
    return Outcome(code, *capsys.readouterr())


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with the package under test on the path, compiled even when coverage is measured."""
    source = Path(str(saferank.__file__)).parents[1]
    return {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "0", **changes}


def start(*arguments: object, **changes: str) -> Outcome:
    """Run a command in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "saferank.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**changes), check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
