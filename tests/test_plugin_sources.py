"""Plug-ins on disk: an edit anywhere in them is noticed, and a kernel that does not compile is explained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saferank._kernel import seen_by_kernels
from saferank.policies import policy_kind, registry
from saferank.policies.registry import load_installed

POLICY = """
from typing import NamedTuple

import numpy as np

from saferank.policies import Setup, register
from saferank.randomness import Words
from saferank.verbs import Call, Impression, Ints, Items, choose, implements, learn
from tilt import first_item


class Tilted(NamedTuple):
    unused: int


class TiltedState(NamedTuple):
    round: Ints
    learned: Ints
    leader: Items


@implements(choose, Tilted)
def _choose(policy: Tilted, state: TiltedState, plan: Call, rng: Words, impression: Impression) -> None:
    impression.places[0] = len(state.leader)
    for place in range(len(state.leader)):
        impression.ranking[place] = state.leader[(place + first_item()) % len(state.leader)]
        impression.start[place], impression.end[place] = place, place + 1
    BODY


@implements(learn, Tilted)
def _learn(policy: Tilted, state: TiltedState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1


def _start(setup: Setup):
    zero = lambda: np.zeros(1, np.int64)
    return Tilted(0), TiltedState(zero(), zero(), np.arange(setup.n_positions, dtype=np.uint32))


register("tilted", Tilted, start=_start, leader=lambda state, plan: state.leader.astype(np.int64))
"""
HELPER = "from saferank.verbs import kernel\n\n\n@kernel\ndef first_item():\n    return {item}\n"


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    small = ["--queries", "2", "--models", "pbm", "--rounds", "50", "--repetitions", "2", "--overwrite", "--out", "out"]
    simulate = ["simulate", "--plugin", "tilted.py", "--policies", "tilted"]
    command = [sys.executable, "-m", "saferank.cli", *simulate, *small]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_an_edit_in_a_file_that_the_plugin_imports_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tilted.py").write_text(POLICY.replace("BODY", "pass"))
    seen = []
    for item in (0, 0, 1):
        (tmp_path / "tilt.py").write_text(HELPER.format(item=item))
        done = run(tmp_path)
        assert done.returncode == 0, done.stderr
        seen.append((tmp_path / "out" / "results.json").read_text().partition('"results"')[2])
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_kernel_that_makes_an_array_is_explained_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tilted.py").write_text(
        POLICY.replace("BODY", "scratch = np.zeros(3)\n    impression.round[0] += int(scratch[0])")
    )
    (tmp_path / "tilt.py").write_text(HELPER.format(item=0))
    done = run(tmp_path)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert done.returncode == 2 and len(lines) == 1, done.stderr
    assert "does not compile" in lines[0] and "Kernels make no new arrays" in lines[0]


def test_an_edit_of_a_number_in_start_leaves_the_compiled_code_valid() -> None:
    source = POLICY.replace("BODY", "pass")
    seen = seen_by_kernels(source.encode())
    for old, new in (("Tilted(0)", "Tilted(7)"), ("import numpy as np", "import numpy as np  # a comment")):
        assert source.count(old) == 1 and seen_by_kernels(source.replace(old, new).encode()) == seen


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("place + 1", "place + 2"),  # in a kernel
        ("from tilt import first_item", "from tilt import first_item\nLEAD = 3"),  # a constant that a kernel may read
        ("unused: int", "unused: float"),
        ('register("tilted"', '_start(None)\nregister("tilted"'),  # what is made of it may be such a constant
    ],
)
def test_an_edit_of_what_a_kernel_may_see_is_noticed(old: str, new: str) -> None:
    source = POLICY.replace("BODY", "pass")
    assert seen_by_kernels(source.replace(old, new).encode()) != seen_by_kernels(source.encode())
    called = source.replace('register("tilted"', 'NOW = _start(None)\nregister("tilted"')
    assert seen_by_kernels(called.replace("Tilted(0)", "Tilted(7)").encode()) != seen_by_kernels(called.encode())


def test_policies_of_installed_packages_are_found_by_their_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "somebodys-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[saferank.policies]\nmine = somebodys_policies\n")
    (tmp_path / "somebodys_policies.py").write_text(
        "from saferank.policies import POLICIES, register\n"
        "known = POLICIES['original']\n"
        "register('somebodys-original', known.policy, start=known.start, leader=known.leader)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    load_installed.cache_clear()
    try:
        assert policy_kind("somebodys-original").name == "somebodys-original"
    finally:
        registry.POLICIES.pop("somebodys-original", None)
        sys.modules.pop("somebodys_policies", None)
    (about / "entry_points.txt").write_text("[saferank.policies]\nmine = not_there_at_all\n")
    load_installed.cache_clear()
    with pytest.raises(ValueError, match=r"the entry point mine \(not_there_at_all\) cannot be imported: Module"):
        policy_kind("somebodys-original")
    load_installed.cache_clear()
