"""While serving nothing is compiled: a call would wait for seconds, and so would all others."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from saferank._kernel import JIT, NotCompiledError, kernel, nothing_compiled


@pytest.mark.skipif(not JIT, reason="interpreted: nothing is compiled anyway")
@pytest.mark.parametrize(("policy", "rule"), [("safe-draw", "anytime:1e-5"), ("kl-ucb-br", "paper:1e-5")])
def test_while_serving_nothing_is_compiled(policy: str, rule: str) -> None:
    run(policy, rule)


@pytest.mark.skipif(not JIT, reason="interpreted: nothing is compiled anyway")
def test_what_the_policy_of_another_server_needs_is_compiled_beside_the_event_loop() -> None:
    run("take over", "kl-ucb-br", "paper:1e-5")


@pytest.mark.skipif(not JIT, reason="interpreted: nothing is compiled anyway")
def test_an_unforeseen_type_raises_while_serving() -> None:
    @kernel
    def twice(number: float) -> float:
        return number + number

    with nothing_compiled(), ThreadPoolExecutor(1) as other:
        with pytest.raises(NotCompiledError, match=r"twice\(\) was not compiled at the start for \(int64,\)"):
            twice(1)
        assert other.submit(twice, 1).result() == twice(1) == 2
        with pytest.raises(NotCompiledError, match="float64"):
            twice(0.5)
    assert twice(0.5) == 1.0


def run(*arguments: str) -> None:
    script = [sys.executable, "-m", "tests.service.serving_without_compiling", *arguments]
    done = subprocess.run(script, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
