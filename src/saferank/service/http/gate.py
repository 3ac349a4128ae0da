"""The gate through which every request comes and every answer leaves: the ASGI application that uvicorn calls.

Coming: bounds on how much is worked on, the path as it was sent, and the two hot calls go straight to their handlers.
Leaving: every failure is a problem that names itself, every answer has its security headers and its request id, and is
counted.
"""

import asyncio
import functools
import json
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from saferank.service.http.connections import GuardedProtocol, OpenConnections
from saferank.service.http.hub import Hub, Receive
from saferank.service.http.openapi import OPEN_PATHS, OPEN_TO_THIS_MACHINE
from saferank.service.http.routes.hot import HotCall
from saferank.service.identifiers import RandomBytes
from saferank.service.json_logs import log
from saferank.service.settings import is_loopback
from saferank.service.wire.problems import MEDIA_TYPE, Problem

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

SECURITY: RawHeaders = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
]
_OTHER, RANK, FEEDBACK = "other", "/v1/rank", "/v1/feedback"
JSON = b"application/json"
WAITING = 4
"""So many times more reports than rank calls may be worked on: nearly all of their time they wait for the disk."""

LARGEST_UNFINISHED = 64_000_000
"""Bytes of bodies that are still arriving, or four of the largest that one may be."""

_request_ids = RandomBytes()
_REQUEST_ID = re.compile(rb"[!-~]{1,128}")


BROWSER_PATHS = ("/v1/feedback", "/v1/beacon", "/ubi_events", "/ubi_queries")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
]


class Gate:
    """The outermost ASGI application."""

    def __init__(self, app: App, hub: Hub, hot: dict[str, HotCall]) -> None:
        self.app, self._hub, self._hot = app, hub, hot
        self._in_flight = dict.fromkeys([*hot, _OTHER], 0)
        self._pages_this_turn = 0
        settings, metrics = hub.settings, hub.metrics
        unfinished = max(LARGEST_UNFINISHED, 4 * settings.max_body_bytes)
        self.connections = OpenConnections(settings.max_connections, unfinished, metrics.connections_closed.inc)
        metrics.in_flight.set_function(self.in_flight)
        metrics.connections.set_function(lambda: len(self.connections))
        self._cross_origin = CrossOrigin(hub.settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        raw = scope.get("raw_path") or scope["path"].encode()
        scope["path"] = path = raw.partition(b"?")[0].decode("latin-1")  # as sent: names may contain %2F
        kind = path if path in self._hot else _OTHER  # rank must not be refused because feedback waits for the disk
        exchange = Exchange(scope, send, self._cross_origin.headers(scope))
        connection = self.connections.by_address.get(scope.get("client"))
        if connection is not None:
            connection.begin()
        try:
            await self._serve(scope, ArrivingBody(self, scope, receive, kind, connection), exchange, kind)
        finally:
            if connection is not None:
                connection.end()

    def is_busy(self, kind: str) -> bool:
        """True when one request more of this kind could not be answered in time."""
        return self._hub.stopping or self.is_full(kind) or self._hub.pulse.is_behind()

    def is_full(self, kind: str) -> bool:
        """True when as many requests of this kind are worked on as may be, or were in this turn of the event loop.

        A page in memory is answered in one step, so it is never in flight when the next request is looked at. But
        requests that came together are answered one after the other, and the last must not wait for too many.
        """
        most = self._hub.settings.max_in_flight * (WAITING if kind == FEEDBACK else 1)
        return self._in_flight[kind] + (self._pages_this_turn if kind == RANK else 0) >= most

    def _count_page(self) -> None:
        if not self._pages_this_turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._pages_this_turn += 1

    def _end_turn(self) -> None:
        self._pages_this_turn = 0

    def step_out(self, kind: str) -> None:
        """The request waits for its body: it is not worked on until ``step_in``."""
        self._in_flight[kind] -= 1

    def step_in(self, kind: str) -> None:
        """The opposite of ``step_out``."""
        self._in_flight[kind] += 1

    async def _serve(self, scope: Scope, receive: Receive, exchange: "Exchange", kind: str) -> None:
        path, started, busy = scope["path"], time.perf_counter(), self.is_busy(kind)
        self._in_flight[kind] += 1
        try:
            await self._answer(scope, receive, exchange, kind, busy)
        except Exception as error:
            await exchange.refuse(_problem_of(error, path, exchange.request_id))
        finally:
            self._in_flight[kind] -= 1
            seconds = time.perf_counter() - started
            self._hub.metrics.answered(exchange.endpoint, exchange.status, seconds)
            self._note(scope["method"], path, exchange.status, seconds, exchange.request_id)

    def in_flight(self) -> int:
        """Requests being worked on."""
        return sum(self._in_flight.values())

    async def _answer(self, scope: Scope, receive: Receive, exchange: "Exchange", kind: str, busy: bool) -> None:
        path = scope["path"]
        if kind != _OTHER:
            exchange.endpoint = path
        self._admit(scope, busy)
        if kind != _OTHER and scope["method"] == "POST":
            body = await self._hot[path](scope["headers"], receive)
            if kind == RANK:
                self._count_page()
            await exchange.respond(200, JSON, body)
        elif self._cross_origin.is_preflight(scope):
            await exchange.respond(204, b"", b"")
        else:
            try:
                await self.app(scope, receive, exchange.send)
            finally:
                exchange.endpoint = getattr(scope.get("route"), "path", exchange.endpoint)

    def _admit(self, scope: Scope, busy: bool) -> None:
        hub = self._hub
        if scope["path"] in OPEN_PATHS:
            return
        if not hub.settings.has_keys:
            _check_host(scope["headers"])
        if _is_switch(scope):  # an operator who wants to stop something must not wait with everybody else
            return
        if busy and scope["path"] not in OPEN_TO_THIS_MACHINE:
            raise too_busy()

    def _note(self, method: str, path: str, status: int, seconds: float, request_id: str) -> None:
        """A line in the log for a share of the requests."""
        share = self._hub.settings.access_log_share
        if share and random.random() < share:
            facts: dict[str, Any] = {"method": method, "path": path, "status": status, "request_id": request_id}
            log(logging.INFO, "answered", **facts, seconds=round(seconds, 6))


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, send: Send, own_headers: RawHeaders) -> None:
        self._send = send
        self.own_headers = own_headers
        self.started = False
        self.endpoint = "none"
        self.status = 0
        self.request_id = request_id_of(scope["headers"])

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass an answer on, with what every answer has."""
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            given = message.get("headers", [])
            names = {name for name, _ in given}
            added = [header for header in SECURITY if header[0] not in names]
            message["headers"] = [*given, *added, *self.own_headers, (b"x-request-id", self.request_id.encode())]
        await self._send(message)

    async def respond(
        self, status: int, content_type: bytes, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send a whole answer."""
        kind: RawHeaders = [(b"content-type", content_type)] if content_type else []
        length: RawHeaders = [(b"content-length", b"%d" % len(body))] if status != 204 else []
        await self.send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *headers]})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, problem: Problem) -> None:
        """Send a problem, unless an answer has begun: then all that is left is to end it."""
        if not self.started:
            body = json.dumps(problem.as_dict()).encode()
            await self.respond(problem.status, MEDIA_TYPE.encode(), body, problem_headers(problem))


class ArrivingBody:
    """The body of a request, which may come in pieces.

    While it is waited for the request has no place among those that are worked on: otherwise a few bodies that never
    end would keep everybody else out. How many may be waited for is bounded by ``OpenConnections``.
    """

    __slots__ = ("_connection", "_gate", "_is_switch", "_is_whole", "_kind", "_receive")

    def __init__(
        self, gate: Gate, scope: Scope, receive: Receive, kind: str, connection: GuardedProtocol | None
    ) -> None:
        self._gate, self._receive, self._kind, self._connection = gate, receive, kind, connection
        self._is_switch, self._is_whole = _is_switch(scope), False

    async def __call__(self) -> MutableMapping[str, Any]:
        """The next message; Problem 503 when the body is whole and there is no place for the request."""
        if self._is_whole:
            return await self._receive()
        gate, connection = self._gate, self._connection
        gate.step_out(self._kind)
        if connection is not None:
            gate.connections.wait(connection)
        full = False
        try:
            message = await self._receive()
            self._is_whole = not message.get("more_body")
            full = self._is_whole and gate.is_full(self._kind)
        finally:
            gate.step_in(self._kind)
        if connection is not None and self._is_whole:
            gate.connections.stop_waiting(connection)
        elif connection is not None:
            gate.connections.hold(connection, len(message.get("body", b"")))
        if full and not self._is_switch:
            raise too_busy()
        return message


def _is_switch(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "POST" and path.startswith("/v1/") and path.endswith("/kill")


def internal_error() -> Problem:
    """What the caller is told about a fault of ours."""
    return Problem(500, "Internal error", "this is a fault of the service; it has been logged")


def too_busy() -> Problem:
    """What a caller is told who cannot be answered in time."""
    return Problem(503, "Too busy", "more requests than can be answered in time; try again", retry_after=1)


def _problem_of(error: Exception, path: str, request_id: str) -> Problem:
    """What the caller is told; a fault of ours is told as one, and logged whole."""
    if isinstance(error, Problem):
        return error
    log(logging.ERROR, "failed", error=error, path=path, request_id=request_id)
    return internal_error()


def problem_headers(problem: Problem) -> RawHeaders:
    """What belongs to a refusal besides its body."""
    headers: RawHeaders = []
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="saferank"'))
    if problem.status in (429, 503):
        headers.append((b"retry-after", b"%d" % (problem.retry_after or 1)))
    if problem.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not wanted
    return headers


def request_id_of(headers: RawHeaders) -> str:
    """The id that a caller gave its request, or a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value.decode()
    return _request_ids.take(8).hex()


def _check_host(headers: RawHeaders) -> None:
    """Without keys only this machine may call: a foreign name in Host is a web page that was led here by its DNS."""
    host = next((value for name, value in headers if name == b"host"), b"localhost").decode("latin-1")
    if not _is_here(host):
        detail = f"without keys this service answers to localhost only, not to {host[:100]!r}"
        raise Problem(421, "Foreign host name", detail)


@functools.lru_cache(maxsize=256)
def _is_here(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    return is_loopback((name if colon and port.isdigit() else host).strip("[]"))


class CrossOrigin:
    """Which web pages may read the answer to their feedback (CORS): those of the origins that the settings name."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, scope: Scope) -> RawHeaders:
        """The headers that let the page read the answer; none for others."""
        if not self._origins or scope["path"] not in BROWSER_PATHS:
            return []
        origin = _header(scope, b"origin")
        if origin not in self._origins:
            return [(b"vary", b"Origin")]
        allowed = [(b"vary", b"Origin"), (b"access-control-allow-origin", origin)]
        return [*allowed, *_PREFLIGHT] if self.is_preflight(scope) else allowed

    def is_preflight(self, scope: Scope) -> bool:
        """True for the question of a browser whether the page may send feedback."""
        return (
            bool(self._origins)
            and scope["method"] == "OPTIONS"
            and scope["path"] in BROWSER_PATHS
            and _header(scope, b"origin") in self._origins
            and _header(scope, b"access-control-request-method") == b"POST"
        )


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")
