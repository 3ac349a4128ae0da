"""How long does the paper's profile take? A share of its repetitions is run, and the rest is reckoned.

python benchmarks/policies/paper_profile.py            # 1/20 of the repetitions
python benchmarks/policies/paper_profile.py --whole    # all of it: minutes
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPETITIONS = 100
SHARE = 20


def run(repetitions: int, folder: Path) -> float:
    """Seconds of a process of its own that reproduces the paper with this number of repetitions."""
    command = [sys.executable, "-m", "saferank.cli", "reproduce", "--profile", "paper", "--overwrite"]
    started = time.perf_counter()
    subprocess.run([*command, "--repetitions", str(repetitions), "--out", str(folder)], check=True, stdout=sys.stderr)
    return time.perf_counter() - started


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="run all repetitions")
    repetitions = REPETITIONS if parser.parse_args().whole else REPETITIONS // SHARE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "paper"
        seconds = run(repetitions, folder)
        facts = json.loads((folder / "results.json").read_text())["provenance"]["reproduction"]
        megabytes = (folder / "results.json").stat().st_size / 1e6
    by_policy: dict[str, float] = facts["seconds_by_policy"]
    rounds = 100 * repetitions * facts["rounds"] * len(by_policy) * len(facts["models"])
    print(f"{repetitions} of {REPETITIONS} repetitions: {seconds:.0f} s in all, results.json {megabytes:.1f} MB")
    print(f"the paper's experiment: {rounds:.3g} rounds, {sum(by_policy.values()):.0f} s of threads, by policy:")
    for policy, each in by_policy.items():
        print(f"  {policy:12} {each:7.1f} s  {1e9 * each * len(by_policy) / rounds:5.0f} ns a round")
    print(
        f"all {REPETITIONS} repetitions: about {sum(by_policy.values()) * REPETITIONS / repetitions:.0f} s of threads"
    )
    print(f"peak memory {facts['peak_memory_mb']} MB")


if __name__ == "__main__":
    main()
