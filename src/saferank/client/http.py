"""One request and its answer: never followed elsewhere, never read beyond a limit, every failure a ``Trouble``."""

import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from saferank.client.answers import Refused, Trouble

LARGEST_ANSWER = 2**20
"""Bytes; a hundred ids of 256 characters and their token are far below."""
IDLE_SECONDS = 4.0
"""Idle connections are kept for less than the 5 s after which a usual server closes them."""
_PASSING = (404, 405, 408, 425, 429)
"""Of the 4xx, those that pass; the first two are not the service's but of something in front of it."""


class Wire:
    """Requests to one service; used on one event loop."""

    def __init__(self, url: str, key: str | None, trust: ssl.SSLContext | None) -> None:
        """``trust`` None: certificates are not looked at, because ``url`` is http and has none."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._client = httpx.AsyncClient(
            base_url=url,
            headers=headers if key is None else {**headers, "Authorization": f"Bearer {key}"},
            timeout=None,  # every request runs under one limit for all of it
            verify=trust or False,
            trust_env=False,  # production's ranking must not depend on a proxy variable
            follow_redirects=False,
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=IDLE_SECONDS),
        )

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of a 200 answer; ``Trouble`` (or ``Refused``, for a 4xx) for everything else.

        A kept connection may have been closed by the other side at the moment of use: one second try, on another.
        """
        try:
            return await self._post(path, body)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            pass
        except httpx.HTTPError as problem:
            raise _unreachable(problem) from problem
        try:
            return await self._post(path, body)
        except httpx.HTTPError as problem:
            raise _unreachable(problem) from problem

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _post(self, path: str, body: bytes) -> bytes:
        async with self._client.stream("POST", path, content=body) as answer:
            received = bytearray()
            async for chunk in answer.aiter_raw():  # raw: nothing is unpacked, so nothing small becomes huge
                received += chunk
                if len(received) > LARGEST_ANSWER:
                    raise Trouble("answer", f"the answer is larger than {LARGEST_ANSWER} bytes")
            _check(answer.status_code, answer.headers, bytes(received))
            return bytes(received)


def _unreachable(problem: httpx.HTTPError) -> Trouble:
    return Trouble("connection", f"the service cannot be reached ({type(problem).__name__}: {problem})")


def _check(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status == 200:
        return
    said = body[:300].decode("utf-8", "replace")
    if 400 <= status < 500 and status not in _PASSING:
        raise Refused(f"status {status}", f"the service refused the call with status {status}: {said}")
    raise Trouble(f"status {status}", f"the service answered with status {status}: {said}", _seconds(headers))


def _seconds(headers: Mapping[str, Any]) -> float:
    """Retry-After in seconds, if it is given so; 0 otherwise."""
    try:
        return min(max(float(headers.get("retry-after", 0)), 0.0), 60.0)
    except ValueError:
        return 0.0
