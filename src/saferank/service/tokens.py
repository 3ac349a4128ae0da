"""Tokens: the sealed record of a page, which comes back with its clicks.

    name of the key . impression id, then the record under AES-256-GCM

A token goes through browsers, which must not learn which item was compared without being shown, and must not change
anything. So the record is encrypted and authenticated. The impression id is in clear: it is the nonce, which is safe
because an id is given to one record only. The name of the key is authenticated as well. A token that differs in
any letter is refused before anything of it is read.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from saferank.service import identifiers
from saferank.service.wire.problems import Problem
from saferank.store.contract import EVERYBODY, OperationKind, Store, StoreError
from saferank.store.page_record import ID_SIZE, DamagedRecordError, PageRecord, read_record


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
        return f"{self._current}.{identifiers.to_text(impression + sealed)}"

    def open(self, token: str) -> PageRecord:
        """The record of a page; Problem 401 unless this service sealed it."""
        return self.opened(token)[0]

    def opened(self, token: str) -> tuple[PageRecord, bytes]:
        """The record of a page and its packed bytes, which the log keeps; Problem 401 as above."""
        name, _, text = token.partition(".")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise _bad("it is not a token of this service, or its key is no longer known")
        try:
            data = identifiers.from_text(text)
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
    operation = await store.add_operation(EVERYBODY, 0, OperationKind.KEYS, "{}")
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
