"""The schema ``saferank`` of a database: made or checked before anything is served."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from saferank.store.contract import SCHEMA_VERSION, SHARDS, StoreError
from saferank.store.postgres.connections import Connection, connect, first_line
from saferank.store.sql import check_version, new_facts, schema, statements

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
    """Connect, check the server, and make or check its schema; StoreError says why it cannot be used."""
    try:
        connection = await connect(address)
    except psycopg.Error as problem:
        raise StoreError(f"{name}: cannot be connected to: {_reason(problem)}") from problem
    try:
        _check_server(connection, name)
        await _make_or_check(connection, name)
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


async def _make_or_check(connection: Connection, name: str) -> None:
    """Make the tables, all at once or not at all; servers that start together come one after the other."""
    sql = statements("postgres")
    async with connection.transaction():
        await connection.execute(sql["lock_schema"])
        exists, ours, relations = await (await connection.execute(sql["schema"])).fetchone() or (False, False, 0)
        if ours:
            (version,) = await (await connection.execute(sql["schema_version"])).fetchone() or (0,)
            check_version(int(version or 0), name)
            return
        if relations:
            raise StoreError(f"{name}: has a schema saferank of something else; name another database")
        if not exists:
            await connection.execute(sql["create_schema"])
        await connection.execute(schema("postgres"))
        for row in new_facts():
            await connection.execute(sql["put_meta"], row)
        await connection.execute(sql["add_shards"], (SHARDS,))
        await connection.execute(sql["set_schema_version"], (SCHEMA_VERSION,))


def _reason(problem: psycopg.Error) -> str:
    """The sentence of PostgreSQL inside that of libpq, with the fix for the most common one."""
    text = " ".join(str(problem).split())
    _, fatal, reason = text.rpartition("FATAL: ")
    said = reason.strip() if fatal else text
    return f"{said}; create it first (createdb)" if said.startswith("database") and "does not exist" in said else said
