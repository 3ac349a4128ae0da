"""Tokens: the sealed record of a page, which comes back with its clicks.

    name of the key . record, encrypted . HMAC-SHA256 of both

A token goes through browsers, which must not learn which item was compared without being shown. So the record is
encrypted: with the keystream SHAKE-256(key, impression), which is never used for two records because an impression id
is never given twice; the id itself is in clear. The signature is over what is sent, and is compared as text and in
constant time, so a token that differs in any letter is refused before anything is read of it.
"""

import hashlib
import hmac
from collections.abc import Mapping

from saferank.service import identifiers
from saferank.service.wire.problems import Problem
from saferank.store.page_record import ID_SIZE, DamagedRecordError, PageRecord, unpacked


class Tokens:
    """Seals with the current key, opens with every key it knows."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if any("." in name or not name.isascii() for name in keys):
            raise ValueError("names of token keys are ASCII without a point")
        self._keys, self._current = dict(keys), current

    def seal(self, impression: bytes, record: bytes) -> str:
        """The token of a page, from its id and its packed record."""
        key = self._keys[self._current]
        text = f"{self._current}.{identifiers.to_text(impression + _crossed(key, impression, record))}"
        return f"{text}.{_signature(key, text)}"

    def open(self, token: str) -> PageRecord:
        """The record of a page; Problem 401 unless this service sealed it."""
        return self.opened(token)[0]

    def opened(self, token: str) -> tuple[PageRecord, bytes]:
        """The record of a page and its packed bytes, which the log keeps; Problem 401 as above."""
        text, _, signature = token.rpartition(".")
        name, _, sealed = text.partition(".")
        key = self._keys.get(name)
        if key is None or not token.isascii():
            raise _bad("it is not a token of this service, or its key is no longer known")
        if not hmac.compare_digest(_signature(key, text), signature):
            raise _bad("its signature is wrong: it was altered or made elsewhere")
        data = identifiers.signed_bytes(sealed)
        body = _crossed(key, data[:ID_SIZE], data[ID_SIZE:])
        try:
            return unpacked(body), body
        except DamagedRecordError as problem:
            raise _bad("it was made by another version of this service") from problem


def _crossed(key: bytes, impression: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt."""
    stream = hashlib.shake_256(b"saferank token\0" + key + impression).digest(len(data))
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")


def _bad(why: str) -> Problem:
    return Problem(401, "Bad token", f"the token cannot be accepted: {why}; send it exactly as rank gave it", "token")


def _signature(key: bytes, text: str) -> str:
    return identifiers.to_text(hmac.digest(key, text.encode("ascii"), "sha256"))
