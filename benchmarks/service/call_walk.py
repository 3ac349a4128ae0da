"""The walk of a warm rank call, of a report and of the closing that learns it: modules, Python calls, processor time.

    python benchmarks/service/call_walk.py [--policy safe-draw] [--hops]

A call has 40 items, k = 10 and a session, as in ``call_cost.py``. It begins where uvicorn calls the application; the
loops are driven by hand, so nothing else is counted. A Python call is a function of saferank that begins or goes on
after it has waited; kernels are compiled code and do not count. The thread that writes to the store is counted as well.
Times are of other calls, without the counting. The closing is of one page and publishes what it has learnt: the cost of
a context with little traffic.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from call_cost import Calls

import saferank
from saferank.service.http.app import App
from saferank.service.server import new_server
from saferank.service.settings import Settings

PACKAGE = str(Path(saferank.__file__).parent)
WARM, COUNTED, TIMED = 40, 20, 200


class Walk:
    """What is called while it is on, in every thread that began after it was made."""

    def __init__(self) -> None:
        self._hops: list[tuple[str, str]] | None = None
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: Any, event: str, _: object) -> None:
        if self._hops is not None and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            module = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
            self._hops.append((module, frame.f_code.co_qualname))

    async def of(self, work: Callable[[], Any]) -> list[tuple[str, str]]:
        """The hops of one piece of work."""
        hops: list[tuple[str, str]] = []
        self._hops = hops
        await work()
        self._hops = None
        return hops


async def answered(app: App, path: str, call: dict[str, object]) -> dict[str, Any]:
    """What the application answers."""
    said = list[bytes]()
    request = {"type": "http.request", "body": json.dumps(call).encode(), "more_body": False}
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"connection", b"keep-alive")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}

    async def receive() -> Any:
        return request

    async def send(message: Any) -> None:
        said.append(message.get("body", b""))

    await app(scope, receive, send)
    return dict(json.loads(b"".join(said)))


async def time_of(work: Callable[[], Any]) -> float:
    """Microseconds of processor time of one piece of work, in all threads."""
    began = time.process_time()
    await work()
    return 1e6 * (time.process_time() - began)


async def walked(policy: str, folder: Path, rounds: int, meter: Callable[[Callable[[], Any]], Any]) -> dict[str, Any]:
    """What a meter says of some rank calls, of their reports and of the closings of their pages."""
    server = new_server(
        Settings(store=str(folder), policy=policy, window_seconds=0.02, holdout_share=0, guardrail_drop=0)
    )
    await server.start(loops=False)
    app, calls = App(server), Calls(1)
    found: dict[str, list[Any]] = {"rank": [], "report": [], "closing": []}
    for number in range(WARM + rounds):
        question, page = calls.rank(), dict[str, Any]()

        async def rank(question: dict[str, object] = question, page: dict[str, Any] = page) -> None:
            page.update(await answered(app, "/v1/rank", question))

        async def report(page: dict[str, Any] = page) -> None:
            click = calls.click(page["token"], page["ranking"])
            writing = asyncio.get_running_loop().create_task(answered(app, "/v1/feedback", click))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await server.writer.flush()
            await writing

        said = {"rank": await meter(rank), "report": await meter(report)}
        await asyncio.sleep(0.03)
        said["closing"] = await meter(partial(server.closer.close_due, everything=True))
        await server.heartbeat.attempt()
        if number >= WARM:
            for name, one in said.items():
                found[name].append(one)
    await server.stop()
    found["click"] = [report + closing for report, closing in zip(found["report"], found["closing"], strict=True)]
    return found


def hops_of(policy: str) -> dict[str, list[list[tuple[str, str]]]]:
    """The walks of some calls."""
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(walked(policy, Path(folder), COUNTED, walk.of))
    sys.setprofile(None)
    threading.setprofile(None)
    return found


def measured(policy: str = "safe-draw") -> dict[str, dict[str, float]]:
    """The median of each, also of a click on its way from the report to being learnt."""
    with tempfile.TemporaryDirectory() as folder:
        times = asyncio.run(walked(policy, Path(folder), TIMED, time_of))
    return {
        name: {
            "modules": statistics.median([len({module for module, _ in hops}) for hops in walks]),
            "calls": statistics.median([len(hops) for hops in walks]),
            "us": statistics.median(times[name]),
        }
        for name, walks in hops_of(policy).items()
    }


def main() -> None:
    """Numbers, and with --hops who is called how often on one of the walks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="safe-draw")
    parser.add_argument("--hops", action="store_true", help="name the functions of the last walk, by module")
    options = parser.parse_args()
    for name, numbers in measured(options.policy).items():
        print(f"{name:8} {numbers['modules']:4g} modules {numbers['calls']:5g} Python calls {numbers['us']:6.0f} us")
    for name, walks in hops_of(options.policy).items() if options.hops else ():
        hops = walks[-1]
        print(f"\n{name}")
        for module in dict.fromkeys(module for module, _ in hops):
            functions = Counter(function for other, function in hops if other == module)
            print(f"  {module} {functions.total()}: " + ", ".join(f"{f} {n}" for f, n in functions.items()))


if __name__ == "__main__":
    main()
