"""The folder for results, tried before a long run and not left behind empty after one that failed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from saferank.cli.errors import InputError


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """A folder that exists and can be written to; folders made for it go away again if nothing comes of it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        _remove_empty(missing)
        raise InputError(f"--out {folder}: {_reason(folder, problem)}") from problem
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise


def _reason(folder: Path, problem: OSError) -> str:
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        return "there is a file of that name; name a folder"
    return f"cannot be written to ({problem.strerror or problem}); name another folder"


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):  # not empty, or never made
        for folder in folders:
            folder.rmdir()
