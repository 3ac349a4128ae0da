"""Feedback from web pages of other origins (CORS): only from the origins that the settings name, only for feedback."""

from collections.abc import Iterable, MutableMapping
from typing import Any

PATHS = ("/v1/feedback", "/v1/beacon", "/ubi_events", "/ubi_queries")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
]


class CrossOrigin:
    """Which web pages may read the answer to their feedback."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, scope: MutableMapping[str, Any]) -> list[tuple[bytes, bytes]]:
        """The headers that let the page read the answer; none for others."""
        if not self._origins or scope["path"] not in PATHS:
            return []
        origin = _header(scope, b"origin")
        if origin not in self._origins:
            return [(b"vary", b"Origin")]
        allowed = [(b"vary", b"Origin"), (b"access-control-allow-origin", origin)]
        return [*allowed, *_PREFLIGHT] if self.is_preflight(scope) else allowed

    def is_preflight(self, scope: MutableMapping[str, Any]) -> bool:
        """True for the question of a browser whether the page may send feedback."""
        return (
            bool(self._origins)
            and scope["method"] == "OPTIONS"
            and scope["path"] in PATHS
            and _header(scope, b"origin") in self._origins
            and _header(scope, b"access-control-request-method") == b"POST"
        )


def _header(scope: MutableMapping[str, Any], wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")
