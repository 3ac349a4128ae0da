"""The SQL of a store, one folder each: the tables in ``schema.sql``, named statements in ``statements.sql``."""

import functools
import json
from importlib import resources
from secrets import token_bytes

from saferank.store.contract import SCHEMA_VERSION, StoreError

_MARK = "-- name: "


@functools.cache
def statements(store: str) -> dict[str, str]:
    """Name -> statement, of the store of this name (``embedded`` or ``postgres``)."""
    found: dict[str, str] = {}
    for part in _text(store, "statements.sql").split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        found[name.strip()] = " ".join(" ".join(lines).split())
    return found


def schema(store: str) -> str:
    """The script that makes the tables of a new store, for one transaction."""
    return _text(store, "schema.sql")


def check_version(found: int, name: str) -> None:
    """StoreError unless a store has the schema of this saferank."""
    if found != SCHEMA_VERSION:
        raise StoreError(
            f"{name}: has schema version {found}; this saferank reads version {SCHEMA_VERSION} only: "
            "use the saferank that wrote it, or name another store"
        )


def new_facts() -> list[tuple[str, bytes]]:
    """The first rows of table meta: the secrets of a new store."""
    keys = json.dumps({f"k{token_bytes(4).hex()}": token_bytes(32).hex()})
    return [("session_key", token_bytes(32)), ("token_keys", keys.encode())]


def _text(store: str, name: str) -> str:
    return (resources.files(f"saferank.store.{store}") / name).read_text(encoding="utf-8")
