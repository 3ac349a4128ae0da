"""While serving nothing is compiled: a call would wait for seconds, and so would all others."""

import subprocess
import sys
from pathlib import Path

import pytest

from saferank._kernel import JIT


@pytest.mark.skipif(not JIT, reason="interpreted: nothing is compiled anyway")
@pytest.mark.parametrize(("policy", "rule"), [("safe-draw", "anytime:1e-5"), ("kl-ucb-br", "paper:1e-5")])
def test_while_serving_nothing_is_compiled(policy: str, rule: str) -> None:
    script = [sys.executable, "-m", "tests.service.serving_without_compiling", policy, rule]
    done = subprocess.run(script, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
