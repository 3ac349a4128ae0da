"""Large tables of zeros take memory only where they are written to, also when such tables were freed before."""

import subprocess
import sys

import pytest

_SCRIPT = """
import numpy as np
from saferank.service.memory import take_large_tables_from_the_system

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if {asked}:
    assert take_large_tables_from_the_system()
for _ in range(3):
    used = [np.ones(1_000_000) for _ in range(8)]  # freed, and reused unless the system is asked
    del used
before = resident()
tables = [np.zeros(1_000_000) for _ in range(8)]
for table in tables:
    table[500_000] = 1.0
print(resident() - before)
"""


def grown(asked: bool) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(asked=asked)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and asks glibc")
def test_tables_of_zeros_stay_thin() -> None:
    assert grown(asked=True) < 4_000_000
