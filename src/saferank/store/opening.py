"""Which store an address names: a folder, or a PostgreSQL database."""

from pathlib import Path

from saferank.store.contract import CopiedStore, StoreError


def is_shared(address: str) -> bool:
    """True for a store that several processes may use."""
    return address.startswith(("postgresql://", "postgres://"))


def open_store(address: str | Path, *, readonly: bool = False) -> CopiedStore:
    """The store at an address, not opened yet.

    >>> open_store("mysql://host/base")
    Traceback (most recent call last):
    saferank.store.contract.StoreError: mysql://host/base: is neither a folder nor an address that begins with postgresql://
    """
    text = str(address)
    if is_shared(text):
        return _postgres(text, readonly)
    if "://" in text:
        raise StoreError(f"{text}: is neither a folder nor an address that begins with postgresql://")
    from saferank.store.embedded.store import SqliteStore

    return SqliteStore(Path(address), readonly=readonly)


def _postgres(address: str, readonly: bool) -> CopiedStore:
    try:
        from saferank.store.postgres.store import PostgresStore
    except ImportError as problem:
        needed = "a store on PostgreSQL needs psycopg: pip install 'saferank[postgres]'"
        raise StoreError(f"{needed} ({problem})") from problem
    return PostgresStore(address, readonly=readonly)


async def check_exists(address: str | Path) -> None:
    """StoreError unless there is a store: opening one for writing makes it."""
    store = open_store(address, readonly=True)
    await store.open()
    await store.close()
