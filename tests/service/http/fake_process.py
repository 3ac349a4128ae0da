"""A process with a fake and slow server."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from tests.running_service import LONGEST, RunningService, started


@contextmanager
def running(**settings: Any) -> Iterator[RunningService]:
    """The fake server in a process of its own; other tests that keep the machine busy do not matter."""
    code = f"import sys; sys.path += {sys.path!r}; from tests.service.http.fake_process import main; main()"
    with started(["-c", code, json.dumps({"port": 0, "max_lag_seconds": 60, **settings})]) as service:
        yield service


def _ready(address: str) -> None:
    print("ready:", address, flush=True)


def main() -> None:
    """What the process does; its argument is the settings as JSON."""
    from saferank.service.http.process import bind, run
    from saferank.service.json_logs import log_to_stderr
    from saferank.service.server import Server
    from saferank.service.settings import settings_of
    from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall
    from saferank.service.wire.problems import Problem
    from tests.limits import set_limits
    from tests.service.http.fake_server import FakeServer

    class SlowServer(FakeServer):
        async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
            print("working", flush=True)
            await asyncio.sleep(float(os.environ.get("FEEDBACK_TAKES", "0")))
            return await super().feedback(tenant, calls)

        async def stop(self) -> None:
            if os.environ.get("STOP_HANGS"):
                await asyncio.sleep(LONGEST)
            print("server stopped", flush=True)

    settings = settings_of(set_limits(json.loads(sys.argv[1])))
    log_to_stderr(settings.log_level)
    run(
        cast(Server, SlowServer(settings)),
        bind(settings.host, settings.port),
        _ready,
    )
