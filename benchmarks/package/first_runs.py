"""CPU seconds and memory of first runs: nothing is compiled, everything is read from disk already.

    python benchmarks/package/first_runs.py [NAME ...] [--again]

Every case runs in a process of its own with an empty cache, and with ``--again`` once more with the cache it left. CPU
time is compared and not wall time, because machines are busy with other things.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

_SIMULATE = """
import saferank
saferank.simulate(policies=[{policy!r}], rounds=10, repetitions=1, jobs=1, lifetime={lifetime!r},
                  instances=[one for one in saferank.embedded_instances() if one.model_name == "pbm"][:1])
"""
_SERVICE = """
from saferank.service.knowledge.warm_up import warm_up
warm_up("safe-draw", "anytime:1e-5")
"""
_RANKER = """
import saferank
ranker = saferank.Ranker("safe-draw", original=list("abcde"), candidates=list("fghij"), rule="anytime:1e-5", seed=1)
ranker.feedback(ranker.rank(), ["a"])
"""
_PEAK = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
"""The kernel counts a child's peak from before its program was loaded, so the process says it itself."""
CASES = {
    "import": "import saferank.policies, saferank.simulation",
    "kl-ucb-br": _SIMULATE.format(policy="kl-ucb-br", lifetime=None),
    "safe-draw": _SIMULATE.format(policy="safe-draw", lifetime=None),
    "safe-draw with a lifetime": _SIMULATE.format(policy="safe-draw", lifetime=100_000),
    "a Ranker with safe-draw": _RANKER,
    "service": _SERVICE,
}


def cost_of(code: str, cache: str) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and MB of a process that runs this code with this cache."""
    started = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    with subprocess.Popen([sys.executable, "-c", code + _PEAK], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read().split()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # or Popen would wait for it again
    if process.returncode:
        raise SystemExit(f"the process ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, int(said[-1]) / 1024


def main() -> None:
    """Print a line for every case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(CASES), help="cases: " + ", ".join(CASES))
    parser.add_argument("--again", action="store_true", help="also with the cache that the first run left")
    options = parser.parse_args()
    for name in options.names:
        with tempfile.TemporaryDirectory() as cache:
            for which in ("first", "again") if options.again else ("first",):
                cpu, wall, memory = cost_of(CASES[name], cache)
                print(f"{name:26} {which:6} {cpu:7.1f} s CPU {wall:7.1f} s wall {memory:7.0f} MB", flush=True)


if __name__ == "__main__":
    main()
