"""One server per store: a lock file beside it, let go by the operating system when the process ends in any way."""

import fcntl
from pathlib import Path
from typing import BinaryIO

from saferank.store.contract import StoreError


class StoreLock:
    """Held from creation until ``release``."""

    def __init__(self, store: str | Path) -> None:
        path = Path(f"{store}.lock")
        try:
            self._file: BinaryIO = path.open("ab")
        except OSError as problem:
            raise StoreError(f"{path}: cannot be opened: {problem.strerror or problem}") from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            self._file.close()
            raise StoreError(f"{store}: another server is using this store; stop it first or name another") from problem

    def release(self) -> None:
        """Let another server have the store."""
        self._file.close()
