"""Plug-ins: somebody's own policy, from a file or a module, without touching the package."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import SMALL, Outcome, call, environment, start

PLUGIN = '''"""Backwards: shows the original ranking from the bottom up."""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies import register
from saferank.verbs import choose, learn


class Backwards(NamedTuple):
    n_positions: int


class State(NamedTuple):
    round: np.ndarray
    leader: np.ndarray


@implements(choose, Backwards)
def _choose(policy, evidence, plan, rng, impression):
    impression.places[0] = policy.n_positions
    for place in range(policy.n_positions):
        impression.ranking[place] = policy.n_positions - 1 - place
        impression.start[place], impression.end[place] = place, place + 1


@implements(learn, Backwards)
def _learn(policy, evidence, impression, clicks):
    pass


def _start(setup):
    return Backwards(setup.n_positions), State(np.zeros(1, np.int64), np.arange(setup.n_positions))


register("backwards", Backwards, start=_start, leader=lambda evidence, plan: evidence.leader)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "backwards_policy.py"
    file.write_text(PLUGIN)
    return file


def simulate(tmp_path: Path, plugin: object, **changes: str) -> Outcome:
    options = ("--plugin", plugin, "--policies", "original,backwards", "--overwrite", "--out", tmp_path / "out")
    return start("simulate", *SMALL, *options, NUMBA_CACHE_DIR=str(tmp_path / "cache"), **changes)


def test_a_plugin_from_a_file_is_played_and_its_kernels_are_kept(tmp_path: Path, plugin: Path) -> None:
    first, second = simulate(tmp_path, plugin), simulate(tmp_path, plugin)
    assert (first.code, second.code) == (0, 0)
    assert "backwards" in first.out
    assert "compiling" in first.err
    assert second.err == ""


def test_an_edited_plugin_is_compiled_anew(tmp_path: Path, plugin: Path) -> None:
    before = simulate(tmp_path, plugin)
    plugin.write_text(PLUGIN.replace("policy.n_positions - 1 - place", "place"))
    after = simulate(tmp_path, plugin)
    rows = {line.split()[1]: line.split()[2:] for line in after.out.splitlines() if line.startswith("  pbm")}
    assert rows["backwards"] == rows["original"]
    assert after.out != before.out


def test_a_plugin_module_is_listed(plugin: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(plugin.parent)!r}); from saferank.cli import main; "
        "sys.exit(main(['policies', '--plugin', 'backwards_policy']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    assert "Backwards: shows the original ranking from the bottom up." in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.py", None, "there is no such file"),
        ("broken_plugin.py", "def (", "cannot be imported: SyntaxError"),
        ("failing_plugin.py", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("leaving_plugin.py", "raise SystemExit('bye')", "cannot be imported: SystemExit: bye"),
        ("json.py", "", "a module called json is loaded already; rename the file"),
        ("my-plugin.py", "", "a plug-in is a file called name.py"),
    ],
)
def test_a_file_that_is_no_plugin_is_refused(
    name: str, text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    outcome = call(capsys, "policies", "--plugin", tmp_path / name)
    (line,) = outcome.err.splitlines()
    assert outcome.code == 2
    assert line.startswith(f"saferank: error: --plugin: {tmp_path / name}: ")
    assert message in line
    assert Path(name).stem == "json" or Path(name).stem not in sys.modules


def test_a_module_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "policies", "--plugin", "no_such_module")
    assert outcome.code == 2
    assert "--plugin: no_such_module: cannot be imported: ModuleNotFoundError" in outcome.err


def test_the_same_file_twice_is_one_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty_plugin.py").write_text("")
    options = ["--plugin", tmp_path / "empty_plugin.py"] * 2  # `policies` only lists: it checks nothing
    assert call(capsys, "policies", *options).code == 0
    del sys.modules["empty_plugin"]
