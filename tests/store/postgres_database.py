"""A store on PostgreSQL for the tests."""

import psycopg

from saferank.store.postgres.store import PostgresStore

_TABLES = [
    "context",
    "catalogue",
    "page",
    "waiting",
    "delivery",
    "server",
    "publication",
    "snapshot",
    "version",
    "operation",
    "alarm",
]


class Postgres:
    name, several = "postgres", True

    def __init__(self, address: str) -> None:
        self.address = address

    async def connect(self) -> PostgresStore:
        store = PostgresStore(self.address)
        await store.open()
        return store


def emptied(address: str) -> str:
    """The address, after everything that a store there may hold is gone."""
    with psycopg.connect(address, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('saferank.alarm') IS NOT NULL").fetchone() == (True,):
            connection.execute(f"TRUNCATE {', '.join(f'saferank.{table}' for table in _TABLES)}")
            connection.execute("UPDATE saferank.shard SET epoch = 0, holder = '', until = 0")
            connection.execute("DELETE FROM saferank.meta WHERE name LIKE 'forgotten/%'")
    return address


def without_store(address: str) -> str:
    """The address, of a database that has no schema saferank."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error")
        connection.execute("DROP SCHEMA IF EXISTS saferank CASCADE")
    return address
