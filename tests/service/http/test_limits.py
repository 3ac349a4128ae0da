"""Buckets, the lag of the event loop, and what the constants among the bounds add up to."""

import asyncio
import time

import pytest

from saferank.service import limits
from saferank.service.http import app
from saferank.service.http.endpoints import LARGEST_BROWSER_BODY
from saferank.service.http.limits import HEAD_SECONDS, LARGEST_HEAD, LONGEST_BLANK, Bucket, LoopLag, TenantLimits
from saferank.service.wire.problems import Problem

PAGE_SECONDS, FOLD_SECONDS, BLANK_SECONDS = 300e-6, 12e-6, 10e-9
"""Processor time of a page, of its fold, and of one of the n^2 / 2 ways in which h11 reads n blanks, as measured."""
PAGE_BYTES, LINE_BYTES = 2000, 300
"""Of a page that waits for the store, and of a line of the log."""
COSTS: dict[str, tuple[float, float]] = {
    "seconds that a silent client keeps a place": (HEAD_SECONDS, 15),
    "seconds that an unfinished body keeps a place": (limits.BODY_SECONDS, 15),
    "seconds that an idle client keeps a place": (limits.KEEP_ALIVE_SECONDS, 60),
    "bytes of heads before a key is looked at": (limits.MAX_CONNECTIONS * LARGEST_HEAD, 150e6),
    "bytes of bodies that are arriving": (app.LARGEST_UNFINISHED, 100e6),
    "bytes of a body": (limits.MAX_BODY_BYTES, 2e6),
    "bytes of a body from a web page": (LARGEST_BROWSER_BODY, 500e3),
    "bytes that wait for the store": (limits.MAX_PENDING * PAGE_BYTES, 100e6),
    "bytes of refusals in the logs of a day": (app.REFUSALS_A_SECOND * LINE_BYTES * 86_400, 100e6),
    "seconds of a row of blanks": (LONGEST_BLANK**2 / 2 * BLANK_SECONDS, 0.01),
    "seconds of the rank calls before the last one": (limits.MAX_IN_FLIGHT * PAGE_SECONDS, 0.05),
    "reports that wait for one commit": (limits.MAX_IN_FLIGHT * app.WAITING, 1000),
    "seconds of a rollback behind its snapshot": (limits.SNAPSHOT_EVERY * FOLD_SECONDS, 1),
    "contexts in a process": (limits.MAX_LOADED_CONTEXTS, 10_000),
}


def test_a_bucket_fills_at_its_rate_and_not_beyond_its_size() -> None:
    now = [0.0]
    bucket = Bucket(rate=10, burst=5, clock=lambda: now[0])
    assert bucket.take(5) == 0
    assert bucket.take(1) == pytest.approx(0.1)
    now[0] = 0.1
    assert bucket.take(1) == 0
    now[0] = 100
    assert bucket.take(5) == 0
    assert bucket.take(1) > 0


def test_a_batch_larger_than_the_bucket_takes_all_of_it() -> None:
    bucket = Bucket(rate=1, burst=5, clock=lambda: 0.0)
    assert bucket.take(1000) == 0
    assert bucket.take(1) > 0


def test_tenants_do_not_share_a_bucket() -> None:
    limits = TenantLimits(1.0, 1, lambda: 0.0)
    limits.admit("a")
    limits.admit("b")
    with pytest.raises(Problem) as caught:
        limits.admit("a")
    assert (caught.value.status, caught.value.retry_after) == (429, 1)


def test_no_rate_is_no_limit() -> None:
    limits = TenantLimits(0.0, 1, lambda: 0.0)
    for _ in range(100):
        limits.admit("a", 1000)


def test_the_lag_notices_a_blocked_loop_and_its_recovery() -> None:
    async def run() -> list[bool]:
        lag = LoopLag(0.5)
        found = [lag.is_behind()]
        lag.start()
        time.sleep(0.7)
        found.append(lag.is_behind())
        while lag.is_behind():
            await asyncio.sleep(0.01)
        lag.stop()
        return found

    assert asyncio.run(run()) == [False, True]


@pytest.mark.parametrize("what", COSTS)
def test_what_a_bound_lets_through_is_what_a_server_can_bear(what: str) -> None:
    """Other tests show that each bound is kept, whatever it is; here it must not be ten times larger either."""
    cost, bearable = COSTS[what]
    assert bearable / 10 < cost <= bearable
