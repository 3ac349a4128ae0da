"""A file that cannot be read to its end is a LogError that names it."""

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from saferank.logs import LogError, summarize_log

LINE = '{"query": "q", "items": ["a", "b"], "clicked": ["b"]}\n'


class Failing(io.BytesIO):
    """A file whose disk fails after some bytes."""

    fails_at = 1000

    def readinto(self, buffer: Any) -> int:
        if self.tell() >= self.fails_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().readinto(memoryview(buffer)[: self.fails_at - self.tell()])

    def read(self, size: int | None = -1) -> bytes:
        if self.fails_at == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


@pytest.mark.parametrize("fails_at", [0, 1000])
def test_a_read_error_is_reported_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    log = tmp_path / "log.ndjson"
    log.write_text(LINE * 100, encoding="utf-8")
    content = log.read_bytes()

    really_opened = Path.open

    def opened(self: Path, mode: str = "r", **options: Any) -> Any:
        if self != log:  # numba reads files of its own when the first kernel is compiled
            return really_opened(self, mode, **options)
        file = Failing(content)
        file.fails_at = fails_at
        return file

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(LogError, match=r"log\.ndjson: .*cannot be read: Input/output error"):
        summarize_log(log, "sessions")
