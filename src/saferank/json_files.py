"""JSON files, read strictly and written at once.

Strictly: a key written twice, NaN and Infinity are errors, not surprises. At once: whoever reads the file while it is
written sees the old text or the new one, never half of it.
"""

import json
import os
from pathlib import Path
from typing import Any

from saferank.whole_files import replacing


class JsonFileError(ValueError):
    """Why a file could not be read as JSON, in one line that begins with its name."""


class JsonObject(dict[str, Any]):
    """A JSON object that remembers a key that was written twice, for whoever knows where the object stands."""

    repeated: str | None = None


def read_json(path: str | os.PathLike[str]) -> object:
    """The content of a JSON file in UTF-8; objects are ``JsonObject``."""
    source = on_one_line(path)
    try:
        return _decode(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as problem:
        raise JsonFileError(f"{source}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise JsonFileError(f"{source}: is not UTF-8 text (byte {problem.start}); expected a JSON file") from problem
    except (ValueError, RecursionError) as problem:
        raise JsonFileError(f"{source}: is not JSON: {problem}") from problem


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by ``text``; when anything goes wrong the old file stays."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def on_one_line(path: str | os.PathLike[str]) -> str:
    """A path for a message of one line."""
    return "?".join(os.fspath(path).splitlines())


def _decode(text: str) -> object:
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_whole_number, parse_constant=_refuse_constant)
    except json.JSONDecodeError as problem:
        ending = "; the file seems cut off" if problem.pos >= len(text.rstrip()) else ""
        raise ValueError(f"{problem.msg} at line {problem.lineno}, column {problem.colno}{ending}") from problem


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = JsonObject()
    for key, value in pairs:
        if key in made:
            made.repeated = key
        made[key] = value
    return made


def _whole_number(digits: str) -> int | float:
    # Python refuses to convert thousands of digits; a float can be judged where it stands.
    return int(digits) if len(digits) < 20 else float(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"found {name}, expected finite numbers")
