"""Sessions by keyed hashes: the log knows who is the same, not who it is."""

import hashlib
from typing import NamedTuple

_COINS = 2.0**64


class Visitor(NamedTuple):
    """Whoever looks at a page."""

    session: bytes  # empty: unknown
    share: float  # in [0, 1): the same for a session in every context; holdout is what is below a share


def visitor(key: bytes, tenant: str, session_id: str | None, random: bytes) -> Visitor:
    """The visitor of a call; without a session its share is drawn from eight random bytes."""
    if session_id is None:
        return Visitor(b"", int.from_bytes(random, "big") / _COINS)
    text = f"{tenant}\0{session_id}".encode()
    digest = hashlib.blake2b(text, key=key, digest_size=16).digest()
    return Visitor(digest[:8], int.from_bytes(digest[8:], "big") / _COINS)
