"""A database that cannot be used is refused in one sentence, before anything is served."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from saferank.store.contract import SCHEMA_VERSION, StoreError
from saferank.store.opening import check_exists, open_store
from saferank.store.postgres import connections
from tests.postgres_process import PostgresProcess
from tests.store.postgres_database import without_store


def opened(address: str) -> None:
    async def within() -> None:
        store = open_store(address)
        await store.open()
        await store.close()

    asyncio.run(within())


def refused(address: str) -> str:
    with pytest.raises(StoreError) as problem:
        opened(address)
    text = str(problem.value)
    assert "\n" not in text
    assert "secret" not in text
    return text


@contextmanager
def changed(address: str, change: str, back: str) -> Iterator[None]:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error")
        connection.execute(change)
        try:
            yield
        finally:
            connection.execute(back)


def test_a_wrong_address_is_named_without_its_password() -> None:
    text = refused("postgresql://me:secret@127.0.0.1:1/base")
    assert text.startswith("postgresql://me@127.0.0.1:1/base: cannot be connected to: ")
    assert "refused" in text
    assert "cannot be read" in refused("postgresql://me:secret@127.0.0.1/base?nonsense=1")


def test_a_missing_database_is_named_with_the_fix(postgres_process: PostgresProcess) -> None:
    text = refused(postgres_process.address("nothing"))
    assert text.endswith('cannot be connected to: database "nothing" does not exist; create it first (createdb)')


def test_missing_rights_are_named_with_the_fix(postgres_process: PostgresProcess) -> None:
    address = without_store(postgres_process.address())
    poor = address.replace("postgres@", "poor@")
    with changed(address, "CREATE ROLE poor LOGIN", "DROP OWNED BY poor; DROP ROLE poor"):
        text = refused(poor)
        assert "the role poor lacks a right (permission denied for database postgres); it needs CREATE" in text
        with changed(address, "CREATE SCHEMA saferank AUTHORIZATION poor", "DROP SCHEMA saferank CASCADE"):
            opened(poor)
        opened(address)
        assert "lacks a right (permission denied for schema saferank" in refused(poor)


def test_an_old_server_is_refused(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "server_version", lambda connection: 130_012)
    assert refused(postgres_address).endswith("is PostgreSQL 13; saferank needs 14 or newer")


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_refused(postgres_address: str, version: int) -> None:
    opened(postgres_address)
    statement = "UPDATE saferank.schema_version SET version = {}"
    with changed(postgres_address, statement.format(version), statement.format(SCHEMA_VERSION)):
        text = refused(postgres_address)
    assert f"has schema version {version}; this saferank reads version {SCHEMA_VERSION} only" in text


def test_a_schema_of_something_else_is_refused_and_left_as_it_is(postgres_process: PostgresProcess) -> None:
    address = without_store(postgres_process.address())
    change = "CREATE SCHEMA saferank; CREATE TABLE saferank.other (a int)"
    with changed(address, change, "DROP SCHEMA saferank CASCADE"):
        assert refused(address).endswith("has a schema saferank of something else; name another database")


def test_a_database_without_a_store_is_left_so_by_what_only_reads(postgres_process: PostgresProcess) -> None:
    address = without_store(postgres_process.address())
    for _ in range(2):  # the first has made nothing
        with pytest.raises(StoreError, match=r"postgres: has no store; name the database of one$"):
            asyncio.run(check_exists(address))
    opened(address)
    asyncio.run(check_exists(address))


def test_servers_that_start_together_make_one_store(postgres_process: PostgresProcess) -> None:
    address = without_store(postgres_process.address())

    async def within() -> set[bytes | None]:
        stores = [open_store(address) for _ in range(4)]
        await asyncio.gather(*(store.open() for store in stores))
        keys = {await store.meta("session_key") for store in stores}
        await asyncio.gather(*(store.close() for store in stores))
        return keys

    assert len(asyncio.run(within())) == 1


def test_a_first_start_that_ends_halfway_leaves_nothing(
    postgres_process: PostgresProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = without_store(postgres_process.address())
    with monkeypatch.context() as patched:
        patched.setattr(connections, "new_facts", lambda: [("session_key", None)])
        assert "cannot be used as a store: null value" in refused(address)
    opened(address)
