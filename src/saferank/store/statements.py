"""The SQL of the service, which lives in ``statements.sql`` and ``migrations/``, by name."""

import functools
from importlib import resources
from importlib.resources.abc import Traversable

_FOLDER = resources.files("saferank.store")
_MARK = "-- name: "


@functools.cache
def statements() -> dict[str, str]:
    """Name -> statement."""
    found: dict[str, str] = {}
    text = (_FOLDER / "statements.sql").read_text(encoding="utf-8")
    for part in text.split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        found[name.strip()] = " ".join(statement.split())
    return found


def _number(script: Traversable) -> int:
    return int(script.name.removesuffix(".sql"))


@functools.cache
def migrations() -> dict[int, str]:
    """Schema version -> the script that leads to it from the version before."""
    scripts = [entry for entry in (_FOLDER / "migrations").iterdir() if entry.name.endswith(".sql")]
    return {_number(script): script.read_text(encoding="utf-8") for script in sorted(scripts, key=_number)}
