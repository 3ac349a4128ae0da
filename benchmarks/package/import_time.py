"""How long it takes to import names of the library, each in a fresh process: the fastest of several."""

import argparse
import subprocess
import sys

STATEMENTS = ("from saferank import simulate", "from saferank import Ranker", "import saferank_client")
LIMIT = 0.3
"""Seconds for ``from saferank import simulate``."""

_SCRIPT = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def seconds(statement: str, laps: int = 5) -> float:
    """The fastest import of several, with warm file caches."""
    command = [sys.executable, "-c", _SCRIPT.format(statement)]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(laps))


def main() -> int:
    """Print the times; with --check fail when the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail above {LIMIT} s for simulate")
    parser.add_argument("--core", action="store_true", help="without the client, which needs httpx")
    asked = parser.parse_args()
    times = {statement: seconds(statement) for statement in (STATEMENTS[:2] if asked.core else STATEMENTS)}
    for statement, taken in times.items():
        print(f"{taken:.3f} s  {statement}")
    return int(asked.check and times[STATEMENTS[0]] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
