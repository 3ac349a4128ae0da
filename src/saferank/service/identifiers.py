"""What names a page and who looks at it: ids of impressions, keyed hashes of visitors, and the coins of a page.

An impression id is 16 bytes that begin with the time of issue, so that the log's index grows at its end. The other ten
bytes are random: an id cannot be guessed. Ids that one process gives in the same millisecond grow by a random number of
64 bits, so the order of ids is the order in which its pages were shown.
"""

import base64
import hashlib
import os
import weakref
from typing import NamedTuple

from saferank.store.page_record import COINS_SIZE, ID_SIZE, RANDOM_BYTES, SOURCE_SIZE, TIME_BYTES, VISITOR_SIZE

_STEP_BYTES = 8
_POOL_BYTES = 4096


def new_id(issued_at: int, random: bytes) -> bytes:
    """An id for a page that is issued at a time in milliseconds."""
    return issued_at.to_bytes(TIME_BYTES, "big") + random


def last_id(at: int) -> bytes:
    """An id behind those of all pages that were issued until a time; -1: before all."""
    return b"" if at < 0 else new_id(min(at, (1 << 8 * TIME_BYTES) - 1), b"\xff" * RANDOM_BYTES)


class RandomBytes:
    """Random bytes of the system, asked for in large pieces: a question of its own for every page takes longer.

    Ids are nonces as well, so no two processes may give out the same ones: who is forked begins with none.
    """

    def __init__(self) -> None:
        self.forget()
        _pools.add(self)

    def forget(self) -> None:
        """Give out nothing of what was asked for before."""
        self._left, self._at = b"", 0

    def take(self, size: int) -> bytes:
        """The next bytes; each is given out once."""
        end = self._at + size
        if end > len(self._left):
            self._left, self._at, end = os.urandom(_POOL_BYTES), 0, size
        found, self._at = self._left[self._at : end], end
        return found


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


_pools: "weakref.WeakSet[RandomBytes]" = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_all)


class Ids:
    """Gives ids, each larger than the one before."""

    def __init__(self) -> None:
        self._last, self._random = bytes(ID_SIZE), RandomBytes()

    def next(self, now: int) -> bytes:
        """An id for a page that is issued now; ``now`` never goes back."""
        fresh = new_id(now, self._random.take(RANDOM_BYTES))
        if fresh[:TIME_BYTES] == self._last[:TIME_BYTES]:
            step = 1 + int.from_bytes(self._random.take(_STEP_BYTES), "big")
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


# --- who looks at a page, by keyed hashes, and what chance decides about it ---


_SHARES = 2.0**64
chance = os.urandom
"""The draws of a visitor whom nothing identifies."""


class Visitor(NamedTuple):
    """The visitor who looks at a page."""

    key: bytes  # hash of the session, or else of the request; empty: unknown
    source: bytes  # hash of the account or address behind it; empty: unknown


class Draws(NamedTuple):
    """What chance decides about a page."""

    coins: bytes  # the policy's
    arm: float  # in [0, 1): below the holdout share the page is production's


def visitor(key: bytes, tenant: str, session_id: str | None, request_id: str | None, source: str | None) -> Visitor:
    """The visitor of a call."""
    origin = b"" if source is None else _hashed(key, SOURCE_SIZE, "source", tenant, source)
    if session_id is not None:
        return Visitor(_hashed(key, VISITOR_SIZE, "session", tenant, session_id), origin)
    if request_id is not None:
        return Visitor(_hashed(key, VISITOR_SIZE, "request", tenant, request_id), origin)
    return Visitor(b"", origin)


def draws_of(key: bytes, who: Visitor, tenant: str, context: str, window: int) -> Draws:
    """The draws of a page: the same for a known visitor throughout a window, so that a reload gets the same page.

    Every visitor, context and window has a coin of its own for the arm. The comparison of the arms needs that
    (docs/engineers/effect.md): one coin for everything that a session ever sees would make its pages one observation.
    """
    if who.key:
        drawn = _hashed(key, COINS_SIZE + 8, "page", tenant, context, who.key.hex(), str(window))
    else:
        drawn = chance(COINS_SIZE + 8)
    return Draws(drawn[:COINS_SIZE], int.from_bytes(drawn[COINS_SIZE:], "big") / _SHARES)


def traffic_draw(key: bytes, who: Visitor, tenant: str) -> float:
    """In [0, 1): below the traffic share the policy may choose. The same for a known visitor for good."""
    drawn = _hashed(key, 8, "traffic", tenant, who.key.hex()) if who.key else chance(8)
    return int.from_bytes(drawn, "big") / _SHARES


def _hashed(key: bytes, size: int, *texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode(), key=key, digest_size=size).digest()
