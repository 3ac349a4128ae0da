"""The example of docs/researchers/add-a-policy.md is a policy: it passes the contract, plays and learns."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from saferank import Ranker
from saferank.checks import check_policy
from saferank.instances.embedded import embedded_instances
from saferank.policies import POLICIES
from saferank.simulation.experiment import Plan, cells_of, run

PAGE = Path(__file__).parents[2] / "docs" / "researchers" / "add-a-policy.md"


@pytest.fixture
def one_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name under which the example registers itself, imported from a file as a plug-in is."""
    block, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "one_swap.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    known = dict(POLICIES)
    importlib.import_module("one_swap")
    (name,) = POLICIES.keys() - known.keys()
    yield name
    del POLICIES[name], sys.modules["one_swap"]


def test_it_keeps_the_contract(one_swap: str) -> None:
    check_policy(one_swap)


def test_it_ranks_live_after_its_check(one_swap: str) -> None:
    ranker = Ranker(one_swap, original=["a", "b", "c"], candidates=["d"], seed=1)
    page = ranker.rank()
    ranker.feedback(page, clicked=page.items[:1])
    assert sorted(page.items) == ["a", "b", "c"]


def test_it_improves_a_bad_ranking(one_swap: str) -> None:
    """Bubbling up, the second half of a run costs less than the first; the original ranking costs the same for ever."""
    instances = [instance for instance in embedded_instances(2, models=("pbm",)) if instance.id == "worst-original"]
    plan = Plan((one_swap, "original"), n_positions=10, rounds=20_000, repetitions=1, checkpoints=(10_000, 20_000))
    swapping, original = (run(cell, 0)[:, 0] for cell in cells_of(instances, plan))
    assert original[1] == pytest.approx(2 * original[0])
    assert swapping[1] - swapping[0] < 0.5 * swapping[0]


def test_its_types_stay_out_of_the_cache_of_the_package(one_swap: str, tmp_path: Path) -> None:
    """Otherwise a process without the plug-in could not read that cache, and one with an edited plug-in should not."""
    script = f"import one_swap; from saferank.checks import check_policy; check_policy({one_swap!r}, rounds=5)"
    folders = [str(tmp_path), *sys.path]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(folders)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    indices = list(tmp_path.rglob("*.nbi"))
    assert indices or os.environ.get("NUMBA_DISABLE_JIT") == "1"
    assert [path for path in indices if b"one_swap" in path.read_bytes()] == []


def test_the_page_names_the_command_that_plays_it(one_swap: str) -> None:
    assert f"saferank simulate --plugin one_swap.py --policies {one_swap},kl-ucb-br" in PAGE.read_text(encoding="utf-8")
