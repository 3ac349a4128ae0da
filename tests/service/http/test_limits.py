"""Buckets and the lag of the event loop."""

import asyncio
import time

import pytest

from saferank.service.http.limits import Bucket, LoopLag, TenantLimits
from saferank.service.wire.problems import Problem


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
