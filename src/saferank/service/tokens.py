"""Signed tokens: everything about a page that must be known when its clicks come back.

    name of the key . facts, packed . HMAC-SHA256 of both

The signature is compared as text and in constant time, so a token that differs in any letter is refused. Items are in
it by name: a page whose event was lost in a crash is re-created from its token alone.
"""

import hmac
import struct
from collections.abc import Mapping
from typing import NamedTuple

from saferank.service import identifiers
from saferank.service.arms import ARMS
from saferank.service.problems import Problem

_FORMAT = 1
_HEAD = struct.Struct("<BBB16sIIIHHBBQ8s32s")
_NOBODY = 0xFFFF


class Claim(NamedTuple):
    """What a token says."""

    tenant: str
    context: str
    impression: bytes
    arm: int
    round: int
    leader_version: int
    window_ms: int
    exchanged: int  # a bit for each group whose two items are not in the leader's order
    session: bytes  # hashed; empty: none
    coins: bytes
    row: tuple[str, ...]  # by place: the shown items, then those compared without being shown
    n_shown: int
    group_ends: tuple[int, ...]
    challenger: int | None  # its place

    @property
    def shown(self) -> tuple[str, ...]:
        """The page."""
        return self.row[: self.n_shown]

    @property
    def issued_at(self) -> int:
        """When the page was issued, in milliseconds."""
        return identifiers.issued_at(self.impression)

    @property
    def closes_at(self) -> int:
        """Until when its clicks count."""
        return self.issued_at + self.window_ms


class Tokens:
    """Signs with the current key, accepts every key it knows."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if any("." in name or not name.isascii() for name in keys):
            raise ValueError("names of token keys are ASCII without a point")
        self._keys, self._current = dict(keys), current

    def sign(self, claim: Claim) -> str:
        """The token of a page."""
        text = f"{self._current}.{identifiers.to_text(_packed(claim))}"
        return f"{text}.{_signature(self._keys[self._current], text)}"

    def read(self, token: str) -> Claim:
        """What a token says; Problem 401 unless this service signed it."""
        text, _, signature = token.rpartition(".")
        name, _, facts = text.partition(".")
        key = self._keys.get(name)
        if key is None or not token.isascii():
            raise _bad("it is not a token of this service, or its key is no longer known")
        if not hmac.compare_digest(_signature(key, text), signature):
            raise _bad("its signature is wrong: it was altered or made elsewhere")
        try:
            return _unpacked(identifiers.from_text(facts))
        except (ValueError, struct.error, IndexError) as problem:
            raise _bad("it was made by another version of this service") from problem


def _bad(why: str) -> Problem:
    return Problem(401, "Bad token", f"the token cannot be accepted: {why}; send it exactly as rank gave it", "token")


def _signature(key: bytes, text: str) -> str:
    return identifiers.to_text(hmac.digest(key, text.encode("ascii"), "sha256"))


def _packed(claim: Claim) -> bytes:
    challenger = _NOBODY if claim.challenger is None else claim.challenger
    head = _HEAD.pack(
        _FORMAT, claim.arm, bool(claim.session), claim.impression, claim.round, claim.leader_version, claim.window_ms,
        len(claim.row), challenger, claim.n_shown, len(claim.group_ends), claim.exchanged, claim.session, claim.coins,
    )  # fmt: skip
    names = "\0".join((claim.tenant, claim.context, *claim.row))
    return head + bytes(claim.group_ends) + names.encode("utf-8")


def _unpacked(data: bytes) -> Claim:
    (version, arm, has_session, impression, round_, leader_version, window_ms, n_row, challenger, n_shown,
     groups, exchanged, session, coins) = _HEAD.unpack_from(data)  # fmt: skip
    ends, names = data[_HEAD.size : _HEAD.size + groups], data[_HEAD.size + groups :].decode("utf-8").split("\0")
    if version != _FORMAT or arm >= len(ARMS) or len(names) != n_row + 2:
        raise ValueError("unknown format")
    return Claim(
        tenant=names[0], context=names[1], impression=impression, arm=arm, round=round_, leader_version=leader_version,
        window_ms=window_ms, exchanged=exchanged, session=session if has_session else b"", coins=coins,
        row=tuple(names[2:]), n_shown=n_shown, group_ends=tuple(ends),
        challenger=None if challenger == _NOBODY else challenger,
    )  # fmt: skip
