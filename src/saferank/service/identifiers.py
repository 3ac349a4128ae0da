"""Impression ids: 16 bytes that begin with the time of issue, so that the log's index grows at its end.

The other ten bytes are random: nobody guesses an id.
"""

import base64

TIME_BYTES, RANDOM_BYTES = 6, 10
SIZE = TIME_BYTES + RANDOM_BYTES


def new_id(issued_at: int, random: bytes) -> bytes:
    """An id for a page that is issued at a time in milliseconds."""
    return issued_at.to_bytes(TIME_BYTES, "big") + random


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
    return data if len(data) == SIZE else None
