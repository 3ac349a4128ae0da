"""The live service under load: pages and clicks together at a fixed rate, at twice that rate, and at the rate again.

    python benchmarks/service/service_load.py [--rate 1000] [--seconds 30] [--shelves 50] [--json FILE]

The server is a real ``saferank serve`` in a process of its own, the visitors are this process. Requests leave when they
are due, whatever became of the earlier ones (an open loop), and a latency counts from the time at which the request was
due, so that a server that stalls is charged for everybody it kept waiting. Feedback is answered when it is on disk.
"""

import argparse
import asyncio
import gc
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvloop
from http_load import Connections
from machine import disk_milliseconds, machine
from open_loop import Crowd, watched
from service_process import ServiceProcess
from shop import Shop

MOST_CONNECTIONS = 1200
"""More than the service works on at a time, so that it, and not its visitors, says when it is too much."""

RANK_MS, FEEDBACK_MS = 20.0, 60.0
"""What is promised of the 99th percentile at 1,000 pages and 1,000 reports a second."""


async def phases(service: ServiceProcess, options: argparse.Namespace) -> dict[str, Any]:
    """Warm up; the rate; twice the rate; the rate again."""
    connections = Connections(lambda: service.port, MOST_CONNECTIONS)
    crowd = Crowd(Shop(options.shelves), connections)
    await crowd.visit(options.rate / 4, 3)
    found: dict[str, Any] = {}
    plan = {
        "the rate": (options.rate, options.seconds),
        "twice the rate": (2 * options.rate, min(30.0, max(5.0, options.seconds / 3))),
        "the rate again": (options.rate, min(30.0, max(5.0, options.seconds / 3))),
    }
    for name, (rate, seconds) in plan.items():
        tally, used = await watched(service, crowd.visit(rate, seconds))
        found[name] = {"visitors_a_second": rate, **tally.summary(), **used}
        print(table_row(name, found[name]), flush=True)
    connections.close()
    return found


def table_row(name: str, phase: dict[str, Any]) -> str:
    """A phase in a line."""
    rank, feedback, memory = phase["rank"], phase["feedback"], phase["memory_mb"]
    cores = phase["server_cores"]["user"] + phase["server_cores"]["system"]
    refused = sum(n for kind in phase["statuses"].values() for status, n in kind.items() if status != "200")
    return (
        f"{name:15s} {phase['visitors_a_second']:6.0f} {rank['p50']:9.1f} {rank['p99']:9.1f} {feedback['p50']:9.1f} "
        f"{feedback['p99']:9.1f} {refused:8d} {phase['off']:7d} {cores:7.2f} {phase['visitors_cores']:9.2f} "
        f"{memory[0]:5.0f} -> {memory[-1]:.0f}"
    )


HEADINGS = (
    f"{'phase':15s} {'a second':>6s} {'rank p50':>7s} {'rank p99':>9s} {'feedb p50':>9s} {'feedb p99':>9s} "
    f"{'refused':>8s} {'off':>7s} {'server':>7s} {'visitors':>9s} {'memory MB':>9s}"
)


def broken_promises(found: dict[str, Any]) -> list[str]:
    """What the service promises and this run did not show, in sentences."""
    phases = found["phases"]
    broken = [*_too_slow(phases["the rate"]), *_growing(phases["the rate"])]
    for name, phase in phases.items():
        allowed = {"200", "429", "503"} if name == "twice the rate" else {"200"}
        other = {status for kind in phase["statuses"].values() for status in kind} - allowed
        if other:
            broken.append(f"{name}: there were answers {', '.join(sorted(other))}")
        if phase["impolite"]:
            broken.append(f"{name}: {phase['impolite']} refusals were without Retry-After")
    if found["faults_logged"] or found["exit_code"]:
        broken.append(f"the server logged {found['faults_logged']} faults and ended with {found['exit_code']}")
    return broken


def _too_slow(phase: dict[str, Any]) -> list[str]:
    promised = {"rank": RANK_MS, "feedback": FEEDBACK_MS}
    slow = {kind: most for kind, most in promised.items() if not phase[kind]["p99"] <= most}
    return [f"the p99 of {kind} is {phase[kind]['p99']} ms, not at most {most} ms" for kind, most in slow.items()]


def _growing(phase: dict[str, Any]) -> list[str]:
    """Memory is flat when it does not grow by more than a twentieth from the middle to the end."""
    memory = phase["memory_mb"]
    growth = memory[-1] / memory[len(memory) // 2] - 1
    return [f"memory grew by {growth:.0%} in the second half"] if growth > 0.05 else []


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything, as JSON."""
    found: dict[str, Any] = {"machine": machine(), "fsync_ms": disk_milliseconds(folder)}
    print(f"{found['machine']}, fsync {found['fsync_ms']} ms")
    settings = dict(assignment.split("=", 1) for assignment in options.set)
    service = ServiceProcess(folder, window_seconds=options.window, log_level="warning", **settings)
    with service:
        found["ready_seconds"] = round(service.ready_seconds, 2)
        print(HEADINGS)
        gc.disable()  # pauses of the visitors would be counted as the server's
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found["phases"] = runner.run(phases(service, options))
        found["metrics"] = {name: value for name, value in service.metrics().items() if "bucket" not in name}
        found["faults_logged"] = service.log().count('"error"')
        found["exit_code"] = service.stop()
    found["store_mb"] = round(sum(file.stat().st_size for file in service.store.iterdir()) / 1e6, 1)
    return found


def main() -> None:
    """Measure in a folder beside this project, because a temporary one may be in memory, where fsync is free."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1000.0, help="visitors a second: a page and a click each")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--shelves", type=int, default=50)
    parser.add_argument("--window", type=float, default=10.0, help="seconds until a page closes and is learnt")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="on the disk that is to be measured")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the service")
    parser.add_argument("--json", type=Path, help="write everything there")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is not kept")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="service-load-", dir=options.folder))
    try:
        found = measure(options, folder)
    finally:
        shutil.rmtree(folder)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(json.dumps({name: value for name, value in found.items() if name not in ("metrics", "phases")}))
    broken = broken_promises(found)
    print("\n".join(broken) or "all promises kept")
    sys.exit(bool(broken) and options.check)


if __name__ == "__main__":
    main()
