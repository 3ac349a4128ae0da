"""Impression ids: 16 bytes that begin with the time of issue, so that the log's index grows at its end.

The other ten bytes are random: nobody guesses an id. Ids that one process gives in the same millisecond grow by a
random number of 64 bits, so the order of ids is the order in which its pages were shown.
"""

import base64
import os

from saferank.store.page_record import ID_SIZE, RANDOM_BYTES, TIME_BYTES

_STEP_BYTES = 8


def new_id(issued_at: int, random: bytes) -> bytes:
    """An id for a page that is issued at a time in milliseconds."""
    return issued_at.to_bytes(TIME_BYTES, "big") + random


def last_id(at: int) -> bytes:
    """An id behind those of all pages that were issued until a time; -1: before all."""
    return b"" if at < 0 else new_id(min(at, (1 << 8 * TIME_BYTES) - 1), b"\xff" * RANDOM_BYTES)


class Ids:
    """Gives ids, each larger than the one before."""

    def __init__(self) -> None:
        self._last = bytes(ID_SIZE)

    def next(self, now: int) -> bytes:
        """An id for a page that is issued now; ``now`` never goes back."""
        fresh = new_id(now, os.urandom(RANDOM_BYTES))
        if fresh[:TIME_BYTES] == self._last[:TIME_BYTES]:
            step = 1 + int.from_bytes(os.urandom(_STEP_BYTES), "big")
            fresh = (int.from_bytes(self._last, "big") + step).to_bytes(ID_SIZE, "big")
        elif fresh[TIME_BYTES] & 0x80:  # room to grow within the millisecond
            fresh = fresh[:TIME_BYTES] + bytes([fresh[TIME_BYTES] & 0x7F]) + fresh[TIME_BYTES + 1 :]
        self._last = fresh
        return fresh


def issued_at(impression: bytes) -> int:
    """When the page with this id was issued."""
    return int.from_bytes(impression[:TIME_BYTES], "big")


def to_text(data: bytes) -> str:
    """Bytes in letters, digits, - and _."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes:
    """The bytes; ValueError when ``to_text`` would not have written this text."""
    data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if to_text(data) != text:
        raise ValueError("not as it is written here")
    return data


def impression_id(text: str) -> bytes | None:
    """The bytes of an impression id, or None when the text is none."""
    try:
        data = from_text(text)
    except ValueError:
        return None
    return data if len(data) == ID_SIZE else None
