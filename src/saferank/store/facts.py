"""Facts about a store, in its table meta: secrets that it is made with, and whether it came from a backup."""

import json
import secrets

RESTORED = "restored"
"""The fact that says when a store was made from a backup."""


def new_facts() -> list[tuple[str, bytes]]:
    """Rows of table meta."""
    keys = json.dumps({f"k{secrets.token_hex(4)}": secrets.token_hex(32)})
    return [("session_key", secrets.token_bytes(32)), ("token_keys", keys.encode())]
