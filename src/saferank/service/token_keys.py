"""The keys that sign tokens: from the settings, or those that were made with the store."""

import json

from saferank.service.settings import Settings
from saferank.service.tokens import Tokens
from saferank.store.contract import StoreError


def tokens_of(settings: Settings, kept: bytes | None) -> Tokens:
    """Who signs and reads tokens under these settings; ``kept`` are the keys of the store, as JSON."""
    try:
        keys = settings.token_keys or _kept_keys(kept)
        current = settings.token_key or list(keys)[-1]
        return Tokens({name: bytes.fromhex(secret) for name, secret in keys.items()}, current)
    except ValueError as problem:
        raise StoreError(f"token keys: {problem}") from problem


def _kept_keys(kept: bytes | None) -> dict[str, str]:
    keys = json.loads(kept or b"{}")
    if not isinstance(keys, dict) or not keys or not all(_is_key(secret) for secret in keys.values()):
        raise ValueError("expected an object of key names with secrets of at least 64 hexadecimal digits")
    return dict(keys)


def _is_key(secret: object) -> bool:
    if not isinstance(secret, str) or len(secret) < 64:
        return False
    try:
        bytes.fromhex(secret)
    except ValueError:
        return False
    return True
