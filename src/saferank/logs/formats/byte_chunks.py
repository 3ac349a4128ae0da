"""A file in chunks of whole lines: plain or gzip, in one buffer, whatever the size of the file.

A chunk is the part of the buffer up to its last newline; the incomplete line behind it is moved to the front before the
next read. The buffer grows only for a line that is longer than a chunk. Damaged gzip gives all the lines before the
damage first, so that the caller, who counts them, can say where it is.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from saferank._kernel import kernel
from saferank.files import on_one_line
from saferank.logs.formats.fields import Bytes
from saferank.logs.records import LogError

CHUNK = 1 << 24
LONGEST_LINE = 1 << 24
GZIP = b"\x1f\x8b"

Progress = Callable[[int], object]
"""Called with the number of bytes of the file on disk that were read since the last call."""


class Damaged(Exception):  # noqa: N818 (becomes a LogError where the line is known)
    """What is wrong with the bytes after the lines that were given."""


def unreadable(path: Path, problem: OSError) -> LogError:
    """What the system says about a file that cannot be read, as a ``LogError``."""
    return LogError(f"{on_one_line(path)}: cannot be read: {problem.strerror or problem}")


def open_bytes(path: Path) -> tuple[BinaryIO, BinaryIO]:
    """The content of a file, unpacked if need be, and the file itself, whose position is the progress."""
    try:
        raw = path.open("rb")
    except IsADirectoryError:
        raise LogError(f"{on_one_line(path)}: is a folder; expected a log file") from None
    except OSError as problem:
        raise unreadable(path, problem) from problem
    try:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
    except OSError as problem:
        raw.close()
        raise unreadable(path, problem) from problem
    return (cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb")) if packed else raw), raw


def chunks(path: Path, size: int, progress: Progress) -> Iterator[tuple[Bytes, int]]:
    """Buffers and how many bytes of them to read: whole lines, the last byte a newline."""
    content, raw = open_bytes(path)
    with raw, content:
        buffer, kept, reported, ended = np.zeros(size, np.uint8), 0, 0, False
        while not ended:
            filled, damage = _fill(content, buffer, kept)
            progress(raw.tell() - reported)
            reported, ended = raw.tell(), filled < len(buffer)
            if ended and not damage and filled and buffer[filled - 1] != 10:
                buffer[filled] = 10  # the last line need not end
                filled += 1
            stop = _end_of_lines(buffer, filled)
            if stop:
                yield buffer, stop
            if damage:
                raise Damaged(damage)
            kept = filled - stop
            buffer = _moved(buffer, stop, filled)


def _fill(content: BinaryIO, buffer: Bytes, start: int) -> tuple[int, str]:
    """Read until the buffer is full or the content ends: how far it is filled, and what went wrong."""
    view, filled = memoryview(buffer), start  # type: ignore[arg-type]
    try:
        while filled < len(buffer):
            got = content.readinto(view[filled:])  # type: ignore[attr-defined]
            if not got:
                break
            filled += got
    except EOFError:
        return filled, "the gzip data end in the middle; the file is cut off"
    except (gzip.BadGzipFile, zlib.error) as problem:
        return filled, f"the gzip data are corrupt ({problem})"
    except OSError as problem:
        return filled, f"cannot be read: {problem.strerror or problem}"
    return filled, ""


def _moved(buffer: Bytes, stop: int, filled: int) -> Bytes:
    """The bytes after ``stop`` at the front of a buffer with room for more."""
    if stop == 0 and filled == len(buffer):
        if filled >= LONGEST_LINE:
            raise Damaged(f"a line of more than {LONGEST_LINE >> 20} MB; expected lines of text")
        return np.concatenate((buffer, np.zeros(len(buffer), np.uint8)))
    buffer[: filled - stop] = buffer[stop:filled].copy()
    return buffer


@kernel
def _end_of_lines(data: Bytes, filled: int) -> int:
    """The place after the last newline, or 0."""
    while filled > 0 and data[filled - 1] != 10:
        filled -= 1
    return filled
