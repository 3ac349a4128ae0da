"""Every store, for the tests that are written once."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres_process import PostgresProcess
from tests.store.postgres_database import Postgres, emptied
from tests.store.stores import Embedded, Kind, Memory


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[PostgresProcess]:
    """A PostgreSQL of the tests' own. They end processes, not machines: nothing needs to be synced."""
    process = PostgresProcess()
    with psycopg.connect(process.address(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield process
    process.stop()


@pytest.fixture
def postgres_address(postgres_process: PostgresProcess) -> str:
    """A database whose store, if it has one, is empty."""
    return emptied(postgres_process.address())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "memory":
        return Memory()
    if request.param == "sqlite":
        return Embedded(tmp_path)
    return Postgres(request.getfixturevalue("postgres_address"))
