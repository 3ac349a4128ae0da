"""Visitors by keyed hashes: the log knows who is the same, not who it is. And the coins of their pages."""

import hashlib
import os
from typing import NamedTuple, TypeVar

from saferank.store.page_record import COINS_SIZE, SOURCE_SIZE, VISITOR_SIZE
from saferank.verbs import Ints

Time = TypeVar("Time", int, Ints)
"""One, or an array."""

_SHARES = 2.0**64


class Visitor(NamedTuple):
    """Whoever looks at a page."""

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
        drawn = os.urandom(COINS_SIZE + 8)
    return Draws(drawn[:COINS_SIZE], int.from_bytes(drawn[COINS_SIZE:], "big") / _SHARES)


def window_number(issued_at: Time, window_ms: Time) -> Time:
    """Windows cut time; a visitor has one counted page in each."""
    return issued_at // window_ms


def _hashed(key: bytes, size: int, *texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode(), key=key, digest_size=size).digest()
