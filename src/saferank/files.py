"""Files: written atomically, and JSON read strictly.

Atomically: a reader sees the old file or the new one, never half of it, and the old one stays when the disk is full or
the process is killed. Strictly: a repeated key, NaN and Infinity are errors.
"""

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from saferank.errors import ArgumentError, UsageError


class JsonFileError(UsageError):
    """Why a file could not be read as JSON, in one line that begins with its name."""


class JsonObject(dict[str, Any]):
    """A JSON object that remembers a repeated key, so that the caller can report it with its place."""

    repeated: str | None = None


def read_json(path: str | os.PathLike[str]) -> object:
    """The content of a JSON file in UTF-8; objects are ``JsonObject``."""
    source = on_one_line(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        return strict_json(text, _object)
    except OSError as problem:
        raise JsonFileError(f"{source}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise JsonFileError(f"{source}: is not UTF-8 text (byte {problem.start}); expected a JSON file") from problem
    except (ValueError, RecursionError) as problem:
        raise JsonFileError(f"{source}: is not JSON: {problem}") from problem


def is_device(path: str | os.PathLike[str]) -> bool:
    """True for a device, a pipe, or a link to one, like /dev/stdout."""
    there = Path(path)
    return there.exists() and not there.is_file() and not there.is_dir()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file to write to, which takes the place of ``path`` once it is complete and on disk.

    A symbolic link stays, and the file it leads to is replaced. A device or a pipe is not replaced but written to.
    """
    if is_device(path):  # before links are resolved: /dev/stdout leads to a name like pipe:[7], which no file has
        with Path(path).open("wb") as device:
            yield device
        return
    target = Path(path).resolve() if Path(path).is_symlink() else Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")  # same folder: replacing must not copy
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by ``text``; when anything goes wrong the old file stays."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def on_one_line(path: str | os.PathLike[str]) -> str:
    """A path for a message of one line."""
    return "?".join(os.fspath(path).splitlines())


def strict_json(
    text: str, objects: Callable[[list[tuple[str, Any]]], Any], numbers: Callable[[str], float] | None = None
) -> Any:
    """The value of a JSON text; ValueError for NaN and Infinity, and with the place of what is not JSON.

    ``objects`` makes a value of the keys and values of an object, and ``numbers`` of the text of a number.
    """
    if not text.strip():
        raise ValueError("it is empty")
    try:
        return json.loads(
            text,
            object_pairs_hook=objects,
            parse_int=numbers or _whole_number,
            parse_float=numbers or float,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as problem:
        ending = "; it seems cut off" if problem.pos >= len(text.rstrip()) else ""
        what = problem.msg.removesuffix(" at")  # "Invalid control character at"
        raise ValueError(f"{what} at line {problem.lineno}, column {problem.colno}{ending}") from problem


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


def _no_constant(name: str) -> None:
    raise ValueError(f"found {name}, expected finite numbers")


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make a folder, try to write to it, and remove what was made for it when the work inside fails."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        _remove_empty(missing)
        raise ArgumentError("out", f"{folder}: {_reason(folder, problem)}") from problem
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise


def check_output_file(path: Path, *, beside: bool = False) -> None:
    """An ``ArgumentError`` for ``-``, for a folder and, where others are written ``beside`` the file, for a device."""
    if str(path) == "-":
        instead = "the name of a file" if beside else "the name of a file, or /dev/stdout"
        raise ArgumentError("out", f"found -, expected {instead}")
    if path.is_dir():
        raise ArgumentError("out", f"{path} is a folder, expected the name of a file")
    if beside and is_device(path):
        raise ArgumentError("out", f"{path} is a device, and other files are written beside the first; name a file")


def _reason(folder: Path, problem: OSError) -> str:
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        return "there is a file of that name; name a folder"
    return f"cannot be written to ({problem.strerror or problem}); name another folder"


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):  # not empty, or never made
        for folder in folders:
            folder.rmdir()
