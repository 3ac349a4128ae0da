"""The keys that sign tokens: kept in the store, all of them accepted, the last one signs.

A new key is accepted by every server before any signs with it: otherwise a page of one server would be refused by
another. ``saferank keys rotate`` does both steps while servers run.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping

from saferank.service.tokens import Tokens
from saferank.store.contract import EVERYBODY, OperationKind, Store, StoreError

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
