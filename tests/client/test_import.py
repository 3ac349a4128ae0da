"""The client is light: a shop that imports it gets httpx, not a compiler."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from saferank_client import AsyncClient, Client
assert Client and AsyncClient
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "numba", "scipy", "pydantic", "fastapi"}))
"""


def said(script: str) -> list[str]:
    folders = [str(Path(__file__).parents[2]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_it_loads_nothing_numerical_and_no_server() -> None:
    assert said(SCRIPT) == []


FIRST_CALL = """
import sys
from tests.client import nasty_servers as nasty
from saferank_client import Client
with nasty.serving(nasty.well) as server, Client(server.url, time_limit=20) as client:
    before = set(sys.modules)
    assert not client.rank("c", ["a", "b"]).fallback
    print(*set(sys.modules) - before)
"""


def test_the_first_call_loads_nothing_any_more() -> None:
    """What it would load takes most of the usual time limit."""
    assert said(FIRST_CALL) == []
