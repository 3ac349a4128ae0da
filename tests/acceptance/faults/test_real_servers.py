"""The service's own servers, without HTTP, under simulated time, network and store: the invariants of test_protocol.py.

``SAFERANK_REAL_SEEDS`` says how many seeds are run (``make soak``: more); ``SAFERANK_SEED`` runs one of them alone.
"""

import os
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from saferank.service.calls import operate
from saferank.service.protocol.closer import Closer
from saferank.service.protocol.heartbeat import Heartbeat
from tests.acceptance.faults.mutants import NoEventDigest, NoFence, NoLockWhileWriting
from tests.acceptance.faults.network import SharedStore
from tests.acceptance.faults.real_server import run_real
from tests.acceptance.faults.scenario import HOW_TO_SEARCH, first_breach, seeds_from

SEEDS = int(os.environ.get("SAFERANK_REAL_SEEDS", "20"))
ONE = os.environ.get("SAFERANK_SEED")


@pytest.mark.timeout(900 + SEEDS // 2)
def test_no_seed_breaches_a_promise() -> None:
    seeds = range(SEEDS) if ONE is None else range(int(ONE), int(ONE) + 1)
    found = first_breach(seeds, run_real)
    if found is not None:
        seed, breach = found
        pytest.fail(f"seed {seed}: {breach}\nreplay it: SAFERANK_SEED={seed} .venv/bin/pytest {__file__}")


def test_a_seed_gives_the_same_run_again() -> None:
    assert run_real(5) == run_real(5)


READING = Heartbeat.reading


async def _does_not_wait(*_: Any) -> None:
    """In the place of waiting for other servers."""


@pytest.mark.parametrize(
    ("guard", "name", "mutant", "seed"),
    [
        (Heartbeat, "reading", lambda heartbeat: READING(heartbeat)._replace(is_fresh=True), 9),
        (Heartbeat, "_jumped", lambda *_: False, 639),
        (operate, "_obeyed_everywhere", _does_not_wait, 14),
        (Closer, "_let_go", lambda *_: None, 2),
    ],
)
def test_a_guard_of_a_server_that_is_removed_is_missed(
    guard: Any, name: str, mutant: Callable[..., Any], seed: int
) -> None:
    with patch.object(guard, name, mutant):
        assert first_breach(seeds_from(seed), run_real) is not None, HOW_TO_SEARCH


@pytest.mark.parametrize(("store", "seed"), [(NoFence, 0), (NoEventDigest, 5), (NoLockWhileWriting, 70)])
def test_a_guard_of_the_store_that_is_removed_is_missed(store: type[SharedStore], seed: int) -> None:
    assert first_breach(seeds_from(seed), lambda seed: run_real(seed, store)) is not None, HOW_TO_SEARCH
