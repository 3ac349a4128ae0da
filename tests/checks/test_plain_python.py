"""With NUMBA_DISABLE_JIT=1 a policy may hold anything that plain Python can play with; compiled, it is told so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from saferank import embedded_instances, simulate
from saferank.policies import register
from saferank.verbs import Ints, choose, implements, learn


class Counting(NamedTuple):
    mood: str


class CountingState(NamedTuple):
    round: Ints
    clicked: Any  # a Counter


@implements(choose, Counting)
def _choose(policy, state, plan, rng, impression):
    best = sorted(range(len(impression.shown)), key=lambda item: -state.clicked[item])
    impression.places[0] = len(best)
    for place, item in enumerate(best):
        impression.ranking[place], impression.start[place], impression.end[place] = item, place, place + 1


@implements(learn, Counting)
def _learn(policy, state, impression, clicks):
    state.clicked.update(int(item) for item, click in zip(impression.shown, clicks) if click)


def start(setup):
    return Counting("eager"), CountingState(np.zeros(1, np.int64), Counter(range(setup.n_positions)))


def leader(state, plan):
    return sorted(state.clicked, key=lambda item: -state.clicked[item])


register("counting", Counting, start=start, leader=leader)
results = simulate(embedded_instances(2, models=("cm",)), ["counting"], rounds=60, repetitions=2, progress=False)
print(results.policies, results.curves[1].regret_mean[-1] > 0)
"""


def run(tmp_path: Path, disabled: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "counting.py").write_text(SCRIPT)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
    return subprocess.run(
        [sys.executable, tmp_path / "counting.py"], capture_output=True, text=True, env=environment, check=False
    )


def test_plain_python_plays_with_a_dict_and_a_string(tmp_path: Path) -> None:
    done = run(tmp_path, "1")
    assert (done.returncode, done.stdout) == (0, "['counting'] True\n"), done.stderr


@pytest.mark.check  # starts the compiler
def test_compiled_it_is_refused_with_the_way_out(tmp_path: Path) -> None:
    done = run(tmp_path, "0")
    assert done.returncode == 1
    assert "policy.mood of counting is nothing to compute with" in done.stderr
    assert "NUMBA_DISABLE_JIT=1 plays anything as plain Python." in done.stderr
