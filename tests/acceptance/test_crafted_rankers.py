"""Saved rankers with a right checksum and a crafted content: refused with a sentence, or they work; never a signal.

``SAFERANK_CRAFTED`` says how many (``make soak``: more), ``SAFERANK_CRAFTED_SEED`` where their numbers begin.
"""

import os
import subprocess
import sys
from collections import Counter

import pytest

CASES = int(os.environ.get("SAFERANK_CRAFTED", "336"))
FIRST = int(os.environ.get("SAFERANK_CRAFTED_SEED", "0"))


@pytest.mark.timeout(
    600 + CASES
)  # rankers of all policies are made and taught first, and each process makes them again
def test_crafted_rankers_are_refused_or_work() -> None:
    outcomes: Counter[str] = Counter()
    failed, at, last = [], FIRST, FIRST + CASES
    while at < last:
        command = [sys.executable, "-m", "tests.acceptance.crafted_rankers", str(at), str(last)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line.split() for line in done.stdout.splitlines()]
        outcomes.update(line[0] for line in lines)
        if done.returncode == 0:
            break
        assert lines, f"the first ranker was not even made: {done.stderr}"
        failed.append((done.returncode, " ".join(lines[-1]), done.stderr.strip()[-200:]))
        at = int(lines[-1][1]) + 1
    print(f"{CASES} crafted rankers: {outcomes['refused']} refused, {outcomes['works']} work, {len(failed)} failed")
    assert not failed, failed
    assert outcomes["refused"] > CASES // 3 and outcomes["works"] > CASES // 6
