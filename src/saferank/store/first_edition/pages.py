"""Pages as the first edition packed them.

head | ends of the groups | numbers of the row's items | request_id and, if others were shown, the names of those
"""

import struct
from typing import NamedTuple

from saferank.store.page_record import Law

_HEAD = struct.Struct("<BBBIIIBBBBQ8s32s")
_FORMAT = 1
_COUNTED, _SESSION, _WIDE = 1, 4, 8
_NOBODY = 0xFF


class OldPage(NamedTuple):
    """What was frozen when a page was issued. Items are numbers of its context."""

    arm: int
    counted: bool
    round: int
    window_ms: int
    k: int
    numbers: tuple[int, ...]  # by place: what the learner chose
    group_ends: bytes
    challenger: int | None
    session: bytes
    coins: bytes
    request_id: str | None
    names: tuple[str, ...]  # what was shown, when it is not what the learner chose

    @property
    def law(self) -> Law:
        """First place, and one past the last, of the group of every place."""
        start, end, first = bytearray(), bytearray(), 0
        for last in self.group_ends:
            start += bytes([first]) * (last - first)
            end += bytes([last]) * (last - first)
            first = last
        return Law(bytes(start), bytes(end))


def read(body: bytes) -> OldPage:
    """The page in the body of an event; ValueError for anything else."""
    try:
        return _read(body)
    except (struct.error, UnicodeDecodeError, IndexError) as problem:
        raise ValueError(f"a page of the first edition cannot be read: {problem}") from problem


def _read(body: bytes) -> OldPage:
    (version, arm, flags, round_, _, window_ms, k, n_row, n_groups, challenger, _, session,
     coins) = _HEAD.unpack_from(body)  # fmt: skip
    if version != _FORMAT:
        raise ValueError(f"a page of the unknown format {version}")
    width = 4 if flags & _WIDE else 2
    row = _HEAD.size + n_groups
    end = row + n_row * width
    request_id, *names = body[end:].decode("utf-8").split("\0")
    return OldPage(
        arm=arm, counted=bool(flags & _COUNTED), round=round_, window_ms=window_ms, k=k,
        numbers=struct.unpack_from(f"<{n_row}{'I' if width == 4 else 'H'}", body, row),
        group_ends=body[_HEAD.size : row], challenger=None if challenger == _NOBODY else challenger,
        session=session if flags & _SESSION else b"", coins=coins, request_id=request_id or None, names=tuple(names),
    )  # fmt: skip
