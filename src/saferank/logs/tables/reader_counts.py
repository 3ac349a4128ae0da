"""What a reader counts while it reads: lines, sessions, bad lines by kind, clicks that no page wants."""

from typing import NamedTuple

import numpy as np

from saferank._kernel import kernel
from saferank.logs.errors import FULL, KINDS
from saferank.logs.formats.fields import Bytes
from saferank.logs.summary import BadLines
from saferank.verbs import Ints

_KEPT_LINES = 5
_KEPT_BYTES = 60


class ReaderCounts(NamedTuple):
    """Counts, and of each kind of bad line the numbers of the first ones and how the very first begins."""

    lines: Ints  # [1]
    sessions: Ints  # [1]
    stray_clicks: Ints  # [1] on items that their page did not show
    test_clicks: Ints  # [1] on pages of T records
    bad: Ints  # [kinds]
    first: Ints  # [kinds, _KEPT_LINES] numbers of lines, from 1
    text: Bytes  # [kinds, _KEPT_BYTES]


def new_reader_counts() -> ReaderCounts:
    """Nothing read yet."""
    lines, sessions, stray_clicks, test_clicks = np.zeros((4, 1), np.int64)
    first = np.zeros((FULL, _KEPT_LINES), np.int64)
    text = np.zeros((FULL, _KEPT_BYTES), np.uint8)
    return ReaderCounts(lines, sessions, stray_clicks, test_clicks, np.zeros(FULL, np.int64), first, text)


@kernel
def note_bad(tally: ReaderCounts, kind: int, data: Bytes, start: int, end: int) -> None:
    """Count the line that was counted last, ``data[start:end]``, as a bad one."""
    seen = tally.bad[kind]
    if seen == 0:
        for k in range(min(end - start, tally.text.shape[1])):
            tally.text[kind, k] = data[start + k]
    if seen < tally.first.shape[1]:
        tally.first[kind, seen] = tally.lines[0]
    tally.bad[kind] += 1


def bad_lines(tally: ReaderCounts) -> tuple[BadLines, ...]:
    """The kinds that occurred, in the order of their first lines."""
    found = [
        BadLines(
            kind=name,
            count=int(tally.bad[kind]),
            first=tuple(tally.first[kind, : tally.bad[kind]].tolist()),
            text=_printable(tally.text[kind].tobytes().rstrip(b"\0\r\n")),
        )
        for kind, name in KINDS.items()
        if tally.bad[kind]
    ]
    return tuple(sorted(found, key=lambda bad: bad.first))


def _printable(line: bytes) -> str:
    text = line.decode("utf-8", "replace").expandtabs(1)
    return "".join(letter if letter.isprintable() else "?" for letter in text)
