"""The schema ``saferank`` of a database: checked, made and brought up to date before anything is served."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from saferank.store.checksums import sealed
from saferank.store.contract import SHARDS, StoreError
from saferank.store.facts import new_facts
from saferank.store.postgres.connections import Connection, connect, first_line
from saferank.store.sql import migration, migrations, statements

_OLDEST = 14


def name_of(address: str) -> str:
    """The address without its password, for sentences; StoreError when it is none."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error as problem:
        raise StoreError(f"the address of the store cannot be read: {first_line(problem)}") from problem
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


async def check(address: str, name: str) -> None:
    """Connect, check the server and its schema and bring it up to date; StoreError says why not."""
    try:
        connection = await connect(address)
    except psycopg.Error as problem:
        raise StoreError(f"{name}: cannot be connected to: {_reason(problem)}") from problem
    try:
        _check_server(connection, name)
        await _bring_up_to_date(connection, name)
    except psycopg.errors.InsufficientPrivilege as problem:
        raise StoreError(
            f"{name}: the role {connection.info.user} lacks a right ({first_line(problem)}); "
            "it needs CREATE on the database, or a schema saferank of its own"
        ) from problem
    except psycopg.Error as problem:
        raise StoreError(f"{name}: cannot be used as a store: {first_line(problem)}") from problem
    finally:
        await connection.close()


def server_version(connection: Connection) -> int:
    """The version of PostgreSQL, such as 180001."""
    return connection.info.server_version


def _check_server(connection: Connection, name: str) -> None:
    found = server_version(connection) // 10_000
    if found < _OLDEST:
        raise StoreError(f"{name}: is PostgreSQL {found}; saferank needs {_OLDEST} or newer")


async def _bring_up_to_date(connection: Connection, name: str) -> None:
    """All at once or not at all; servers that start together come one after the other."""
    sql = statements("postgres")
    async with connection.transaction():
        await connection.execute(sql["lock_schema"])
        version = await _version(connection, name)
        script = migration("postgres", version, name)
        if not script:
            return
        await connection.execute(script)
        if version == 0:
            for row in new_facts():
                await connection.execute(sql["add_meta"], sealed(row))
            await connection.execute(sql["add_shards"], (SHARDS,))
        await connection.execute(sql["set_schema_version"], (max(migrations("postgres")),))


async def _version(connection: Connection, name: str) -> int:
    sql = statements("postgres")
    row = await (await connection.execute(sql["schema"])).fetchone()
    exists, ours, relations = row or (False, False, 0)
    if relations and not ours:
        raise StoreError(f"{name}: has a schema saferank of something else; name another database")
    if not exists:
        await connection.execute(sql["create_schema"])
    if not ours:
        return 0
    found = await (await connection.execute(sql["schema_version"])).fetchone()
    return int(found[0]) if found and found[0] is not None else 0


def _reason(problem: psycopg.Error) -> str:
    """The sentence of PostgreSQL inside that of libpq, with the fix for the most common one."""
    text = " ".join(str(problem).split())
    _, fatal, reason = text.rpartition("FATAL: ")
    said = reason.strip() if fatal else text
    return f"{said}; create it first (createdb)" if said.startswith("database") and "does not exist" in said else said
