"""The SQL of a store: named statements in ``statements.sql``, numbered scripts in ``migrations/``, one folder each."""

import functools
from importlib import resources
from importlib.resources.abc import Traversable

from saferank.store.contract import StoreError

_MARK = "-- name: "


@functools.cache
def statements(store: str) -> dict[str, str]:
    """Name -> statement, of the store of this name (``embedded`` or ``postgres``)."""
    found: dict[str, str] = {}
    text = (_folder(store) / "statements.sql").read_text(encoding="utf-8")
    for part in text.split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        found[name.strip()] = " ".join(" ".join(lines).split())
    return found


@functools.cache
def migrations(store: str) -> dict[int, str]:
    """Schema version -> the script that leads to it from the version before."""
    scripts = [entry for entry in (_folder(store) / "migrations").iterdir() if entry.name.endswith(".sql")]
    return {_number(script): script.read_text(encoding="utf-8") for script in sorted(scripts, key=_number)}


def migration(store: str, version: int, name: str) -> str:
    """The script that brings a schema up to date, for one transaction; empty when it is; StoreError if it is newer."""
    scripts = migrations(store)
    if version > max(scripts):
        raise StoreError(
            f"{name}: has schema version {version}; this saferank knows versions up to {max(scripts)}: upgrade it"
        )
    return "\n".join(script for number, script in scripts.items() if number > version)


def _folder(store: str) -> Traversable:
    return resources.files(f"saferank.store.{store}")


def _number(script: Traversable) -> int:
    return int(script.name.removesuffix(".sql"))
