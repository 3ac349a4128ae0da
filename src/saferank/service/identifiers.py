"""What names a page and who looks at it: ids and tokens, keyed hashes of visitors, and the coins of a page.

An impression id is 16 bytes that begin with the time of issue, so that the log's index grows at its end. The other ten
bytes are random: an id cannot be guessed. Ids that one process gives in the same millisecond grow by a random number of
64 bits, so the order of ids is the order in which its pages were shown.

A token is the sealed record of a page, which comes back with its clicks:

    name of the key . impression id, then the record under AES-256-GCM

It goes through browsers, which must not learn which item was compared without being shown, and must not change
anything. So the record is encrypted and authenticated. The impression id is in clear: it is the nonce, which is safe
because an id is given to one record only. The name of the key is authenticated as well. A token that differs in
any letter is refused before anything of it is read.
"""

import asyncio
import base64
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from saferank.service.wire.problems import Problem
from saferank.store.contract import ALL_TENANTS, OperationKind, Store, StoreError
from saferank.store.page_record import (
    COINS_SIZE,
    ID_SIZE,
    RANDOM_BYTES,
    SOURCE_SIZE,
    TIME_BYTES,
    VISITOR_SIZE,
    DamagedRecordError,
    PageRecord,
    read_record,
)

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
        fresh = new_id(now, os.urandom(RANDOM_BYTES))  # of the system: ids are nonces, also in a fork
        if fresh[:TIME_BYTES] == self._last[:TIME_BYTES]:
            step = 1 + int.from_bytes(os.urandom(_STEP_BYTES), "big")
            fresh = (int.from_bytes(self._last, "big") + step).to_bytes(ID_SIZE, "big")
        elif fresh[TIME_BYTES] & 0x80:  # room to grow within the millisecond
            fresh = fresh[:TIME_BYTES] + bytes([fresh[TIME_BYTES] & 0x7F]) + fresh[TIME_BYTES + 1 :]
        self._last = fresh
        return fresh


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


# --- tokens ---


class Tokens:
    """Seals with the current key, opens with every key it knows."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if any("." in name or not name.isascii() for name in keys):
            raise ValueError("names of token keys are ASCII without a point")
        self._ciphers = {name: AESGCM(_encryption_key(secret)) for name, secret in keys.items()}
        self._current, self._cipher = current, self._ciphers[current]
        self._name = current.encode("ascii")

    def seal(self, impression: bytes, record: bytes) -> str:
        """The token of a page, from its id and its packed record."""
        sealed = self._cipher.encrypt(impression, record, self._name)
        return f"{self._current}.{to_text(impression + sealed)}"

    def open(self, token: str) -> tuple[PageRecord, bytes]:
        """The record of a page and its packed bytes, which the log keeps; Problem 401 unless this service sealed it."""
        name, _, text = token.partition(".")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise _bad("it is not a token of this service, or its key is no longer known")
        try:
            data = from_text(text)
            body = cipher.decrypt(data[:ID_SIZE], data[ID_SIZE:], name.encode("ascii"))
        except (ValueError, InvalidTag) as problem:
            raise _bad("its signature is wrong: it was altered or made elsewhere") from problem
        try:
            return read_record(body), body
        except DamagedRecordError as problem:
            raise _bad("it was made by another version of this service") from problem


def _encryption_key(secret: bytes) -> bytes:
    """A key of the length that the cipher wants, used for nothing else."""
    return hashlib.sha256(b"saferank token\0" + secret).digest()


def _bad(why: str) -> Problem:
    return Problem(401, "Bad token", f"the token cannot be accepted: {why}; send it exactly as rank gave it", "token")


# --- the keys that sign tokens: kept in the store, all of them accepted, the last one signs ---
# A new key is accepted by every server before any signs with it: otherwise a page of one server would be refused by
# another. ``saferank keys rotate`` does both steps while servers run.


TOKEN_KEYS = "token_keys"
MOST_KEYS = 5
"""Older ones are dropped by a rotation: windows of their pages are over, unless keys are rotated every few minutes."""
_PATIENCE, _PAUSE = 60.0, 0.1  # seconds


def tokens_of(kept: bytes | None) -> Tokens:
    """Who signs and reads tokens; ``kept`` are the keys of the store, as JSON."""
    keys = _kept_keys(kept)
    try:
        return Tokens({name: bytes.fromhex(secret) for name, secret in keys.items()}, list(keys)[-1])
    except ValueError as problem:
        raise StoreError(f"token keys: {problem}") from problem


async def rotate(store: Store) -> str:
    """Make a key, have it accepted by all servers, then have them sign with it; returns its name."""
    await store.open()
    try:
        keys = _kept_keys(await store.meta(TOKEN_KEYS))
        name, secret = f"k{secrets.token_hex(4)}", secrets.token_hex(32)
        await _put(store, {name: secret, **keys})
        old = list(keys)[-(MOST_KEYS - 1) :]
        await _put(store, {**{other: keys[other] for other in old}, name: secret})
        return name
    finally:
        await store.close()


async def _put(store: Store, keys: Mapping[str, str]) -> None:
    """Keep these keys, and return when every live server has read them."""
    await store.put_meta(TOKEN_KEYS, json.dumps(keys).encode())
    operation = await store.add_operation(ALL_TENANTS, 0, OperationKind.KEYS, "{}")
    for _ in range(round(_PATIENCE / _PAUSE)):
        if all(row.acknowledged >= operation.number for row in await store.servers()):
            return
        await asyncio.sleep(_PAUSE)
    raise StoreError("a server has not read the new token keys; its old ones still sign. Stop it and try again")


def _kept_keys(kept: bytes | None) -> dict[str, str]:
    keys = json.loads(kept or b"{}")
    if not isinstance(keys, dict) or not keys or not all(_is_key(secret) for secret in keys.values()):
        raise StoreError("token keys: expected an object of key names with secrets of at least 64 hexadecimal digits")
    return dict(keys)


def _is_key(secret: object) -> bool:
    if not isinstance(secret, str) or len(secret) < 64:
        return False
    try:
        bytes.fromhex(secret)
    except ValueError:
        return False
    return True


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
