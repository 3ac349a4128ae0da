"""Help as a reader sees it: commands in groups, no types of flags, no braces."""

import subprocess
import sys

import pytest

from saferank.cli.terminal.help import DATA, EXPERIMENTS, SERVICE, STORES
from tests.cli.command_line import call, environment

Capture = pytest.CaptureFixture[str]


def test_commands_are_in_groups(capsys: Capture) -> None:
    _, out, _ = call(capsys, "--help")
    places = [out.index(f" {panel} ") for panel in (EXPERIMENTS, DATA, SERVICE, STORES)]
    assert places == sorted(places)
    assert out.index("simulate ") < places[1] < out.index(" logs ") < places[2] < out.index(" keys ") < places[3]
    assert " Commands " not in out  # none is left over


@pytest.mark.parametrize("command", [(), ("fit",), ("logs", "summary"), ("keys", "new"), ("logs",), ("simulate",)])
def test_flags_show_no_type_and_arguments_no_braces(command: tuple[str, ...], capsys: Capture) -> None:
    code, out, _ = call(capsys, *command, "--help")
    usage = next(line for line in out.splitlines() if "Usage:" in line)
    assert code == 0
    assert "bool" not in out.lower()
    assert "{" not in usage and "}" not in usage


def test_help_of_everything_imports_nothing_that_computes() -> None:
    """Commands learn their options from the functions they call, which import the compiler, when they are called."""
    code = "import sys; from saferank.cli import main; main(['--help']); sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0
