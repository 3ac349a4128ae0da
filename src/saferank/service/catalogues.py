"""Base rankings with their candidates as the log keeps them: each once, by a digest of its content."""

import hashlib
import json
import zlib

DIGEST_SIZE = 16


def pack_catalogue(base: list[str], candidates: list[str]) -> tuple[bytes, bytes]:
    """Digest and body."""
    text = json.dumps([base, candidates], ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return hashlib.blake2b(text, digest_size=DIGEST_SIZE).digest(), zlib.compress(text, 1)


def unpack_catalogue(body: bytes) -> tuple[list[str], list[str]]:
    """Base ranking and candidates."""
    base, candidates = json.loads(zlib.decompress(body))
    return base, candidates
