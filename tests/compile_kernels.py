"""Compile what the servers of the tests need, before many of them start at the same time on a machine that has nothing.

    python -m tests.compile_kernels

Three servers that compile the same kernels at once take several minutes on two cores, and tests would run out of
patience. A second call only loads the compiled code. A process compiles for one policy and one size of catalogues, and
as many run at a time as there are cores: the longest first, so that none of them is left alone at the end.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from saferank.service.knowledge.warm_up import SIZES

_SERVED = (("safe-draw", "anytime:1e-5"), ("kl-ucb-br", "paper:1e-5"))


def _compile(policy: str, rule: str, size: int) -> int:
    call = f"from saferank.service.knowledge.warm_up import warm_up; warm_up({policy!r}, {rule!r}, ({size},))"
    return subprocess.run([sys.executable, "-c", call], check=False).returncode


def main() -> int:
    """Warm up the policies that the tests serve; the exit code."""
    jobs = [(*served, size) for served in _SERVED for size in SIZES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(lambda job: _compile(*job), jobs))


if __name__ == "__main__":
    sys.exit(main())
