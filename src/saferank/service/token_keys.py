"""The keys that sign tokens: from the settings, or made on the first start and kept beside the log."""

import json
import secrets
from pathlib import Path

from saferank.json_files import read_json
from saferank.service.settings import Settings
from saferank.service.tokens import Tokens
from saferank.store.sqlite import StoreError
from saferank.whole_files import replacing

FILE_NAME = "token-keys.json"


def tokens_of(settings: Settings, folder: Path) -> Tokens:
    """Who signs and reads tokens under these settings."""
    try:
        keys = settings.token_keys or _kept_keys(folder / FILE_NAME)
        current = settings.token_key or list(keys)[-1]
        return Tokens({name: bytes.fromhex(secret) for name, secret in keys.items()}, current)
    except (ValueError, OSError) as problem:
        raise StoreError(f"token keys: {problem}") from problem


def _kept_keys(path: Path) -> dict[str, str]:
    """The keys of the file, which is made when it is missing, readable by its owner alone."""
    if not path.exists():
        with replacing(path) as file:
            Path(file.name).chmod(0o600)
            file.write(json.dumps({f"k{secrets.token_hex(4)}": secrets.token_hex(32)}).encode())
    keys = read_json(path)
    if not isinstance(keys, dict) or not keys or not all(_is_key(secret) for secret in keys.values()):
        raise ValueError(f"{path}: expected an object of key names with secrets of at least 64 hexadecimal digits")
    return dict(keys)


def _is_key(secret: object) -> bool:
    if not isinstance(secret, str) or len(secret) < 64:
        return False
    try:
        bytes.fromhex(secret)
    except ValueError:
        return False
    return True
