"""API keys: who is calling, and what may they do.

A key is 32 random bytes, so a plain SHA-256 protects it at rest. The configuration holds hashes only.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from saferank.service.settings import TenantKeys
from saferank.service.wire.problems import Problem

Role = Literal["rank", "feedback", "read", "operate"]
Purpose = Role | Literal["operator"]
NO_KEYS_TENANT = "default"
LONGEST_KEY = 512
Headers = Iterable[tuple[bytes, bytes]]


class Principal(NamedTuple):
    """Who is calling. The name of a key is its role and the first digits of its hash: it opens nothing."""

    tenant: str
    role: Role | Literal["all"]  # all: there are no keys
    name: str = ""


_PREFIX = len("sha256:") + 32  # 128 bits: no two keys share them
_NOBODY = ("", Principal("", "feedback"))
_MAY: dict[Role, tuple[str, ...]] = {
    "rank": ("rank", "all"),
    "feedback": ("feedback", "rank", "all"),
    "read": ("read", "operate", "all"),
    "operate": ("operate", "all"),
}
"""Whose keys are enough where a role is needed: a key opens what its holder needs, and no more."""


def new_key(purpose: Purpose) -> str:
    """A new key, to be given to a caller."""
    return f"saferank_{purpose}_{secrets.token_urlsafe(32)}"


def hashed(key: str) -> str:
    """What the configuration holds of a key.

    >>> hashed("secret")[:20]
    'sha256:2bb80d537b1da'
    """
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


class Keys:
    """The keys of all tenants, and those of operators; without any of tenants, every caller is the one tenant."""

    def __init__(self, tenants: Mapping[str, TenantKeys], operators: Iterable[str] = ()) -> None:
        self._operators = {known[:_PREFIX]: known for known in operators}
        self._known: dict[str, tuple[str, Principal]] = {}  # found by the beginning, compared in constant time
        for tenant, keys in tenants.items():
            for role in _MAY:
                self._known |= {
                    known[:_PREFIX]: (known, Principal(tenant, role, key_name(role, known)))
                    for known in getattr(keys, role)
                }
        self._open = Principal(NO_KEYS_TENANT, "all", "anonymous (no keys)") if not tenants else None

    def caller(self, headers: Headers) -> Principal:
        """Who sent these headers; Problem 401 when no key, or an unknown one, is among them."""
        if self._open is not None:
            return self._open
        key = _key_in(headers)
        if key is None:
            raise Problem(401, "Key needed", "send a key: `Authorization: Bearer KEY` or `X-API-Key: KEY`")
        digest = hashed(key)
        known, principal = self._known.get(digest[:_PREFIX], _NOBODY)
        if not hmac.compare_digest(known, digest):
            raise Problem(401, "Unknown key", "this key is not known here, or no longer")
        return principal

    def caller_as(self, role: Role, headers: Headers) -> Principal:
        """A caller whose key is enough for a role; Problem 403 for another key."""
        caller = self.caller(headers)
        if caller.role not in _MAY[role]:
            detail = f"this needs a key of role {role}; the key that was sent is of role {caller.role}"
            raise Problem(403, f"{role.capitalize()} key needed", detail)
        return caller

    def operator(self, headers: Headers) -> Principal:
        """An operator of all tenants; Problem 401 or 403 for another key, unless there are no keys of any kind.

        Its tenant has no name, as no tenant can be called.
        """
        if not self._operators:
            if self._open is None:
                detail = "this service has no operator keys; make one with `saferank keys operator` (operator_keys)"
                raise Problem(403, "No operator keys", detail)
            return self._open._replace(tenant="")
        digest = hashed(_key_in(headers) or "")
        if not hmac.compare_digest(self._operators.get(digest[:_PREFIX], ""), digest):
            self.caller(headers)  # 401 for no key and an unknown one
            raise Problem(403, "Operator key needed", "what concerns all tenants needs one of operator_keys")
        return Principal("", "operate", key_name("operator", digest))


def key_name(purpose: Purpose, known: str) -> str:
    """What a key is called in logs, from its hash."""
    return f"{purpose} {known.removeprefix('sha256:')[:8]}"


def _key_in(headers: Headers) -> str | None:
    found = None
    for name, value in headers:
        if name == b"authorization":
            scheme, _, credentials = value.partition(b" ")
            found = credentials.strip() if scheme.lower() == b"bearer" else b""
        elif name == b"x-api-key" and found is None:
            found = value.strip()
    return found.decode("latin-1") if found and len(found) <= LONGEST_KEY else None
