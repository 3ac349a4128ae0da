"""The web application: the ASGI application that uvicorn calls, and what all endpoints share.

Coming: bounds on how much is worked on, the path as it was sent, who calls, and only then the body. Leaving: every
failure is a problem that names itself, every answer has its security headers and its request id, and is counted.
"""

import asyncio
import functools
import logging
import mimetypes
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import unquote

import msgspec

from saferank.service import limits
from saferank.service.http.adapters import browser, ubi
from saferank.service.http.endpoints import (
    FEEDBACK,
    JSON,
    RANK,
    Endpoint,
    Endpoints,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Request,
    Scope,
    endpoints,
)
from saferank.service.http.limits import (
    Bucket,
    GuardedProtocol,
    LoopLag,
    OpenConnections,
    TenantLimits,
)
from saferank.service.http.metrics import Metrics
from saferank.service.http.openapi import document, readable
from saferank.service.json_logs import log
from saferank.service.keys import Headers, Keys, Principal
from saferank.service.server import Server
from saferank.service.settings import is_loopback
from saferank.service.wire.calls import INVALID, Id, explained
from saferank.service.wire.problems import MEDIA_TYPE, Problem, unavailable
from saferank.store.contract import StoreUnavailableError

Send = Callable[[Message], Awaitable[None]]

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
SWITCHES_A_SECOND, SWITCHES_AT_ONCE = 10.0, 100
"""Kill calls of a tenant, and of all operators: more than anybody needs, and a bound all the same."""
_ANYBODY = Principal("", "feedback")
_OTHER = "other"
WAITING = 4
"""This many times more reports than rank calls may be worked on: nearly all of their time they wait for the disk."""
LARGEST_UNFINISHED = 64_000_000
"""Bytes of bodies that are still arriving, or four of the largest that one may be."""
REFUSALS_A_SECOND, REFUSALS_AT_ONCE = 2.0, 50
"""Refusals that are logged with their request id: enough to find a caller's mistake, too few to fill a disk."""
BROWSER_PATHS = (FEEDBACK, "/v1/beacon", "/ubi_events", "/ubi_queries")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
]
_REQUEST_ID = re.compile(rb"[!-~]{1,128}")


class App:
    """One running service, as uvicorn and its endpoints see it."""

    def __init__(self, server: Server) -> None:
        settings = server.settings
        self.settings, self.server, self.stopping = settings, server, False
        self._under_caller: Callable[[Headers], Any] | None = None
        if settings.traces:
            from saferank.service.http.adapters import tracing  # imports OpenTelemetry, which is optional

            self.server, self._under_caller = tracing.traced(server), tracing.under_caller
        self.keys, self._is_open = Keys(settings.tenants, settings.operator_keys), not settings.has_keys
        self.limits = TenantLimits(settings.tenant_rate, settings.tenant_burst, time.monotonic)
        self.switch_limits = TenantLimits(SWITCHES_A_SECOND, SWITCHES_AT_ONCE, time.monotonic)
        self.lag, self.metrics = LoopLag(settings.max_lag_seconds), Metrics(server.counters)
        unfinished = max(LARGEST_UNFINISHED, 4 * limits.MAX_BODY_BYTES)
        closed = self.metrics.connections_closed.inc
        self.connections = OpenConnections(limits.MAX_CONNECTIONS, unfinished, closed)
        self.metrics.in_flight.set_function(self.in_flight)
        self.metrics.connections.set_function(lambda: len(self.connections))
        self.worked_on = {RANK: 0, FEEDBACK: 0, _OTHER: 0}  # by kind; not while a body is waited for
        self._pages_this_turn = 0
        self._refusals = Bucket(REFUSALS_A_SECOND, REFUSALS_AT_ONCE, time.monotonic)
        self._origins = frozenset(origin.encode() for origin in settings.cors_origins)
        self.endpoints = [*endpoints, *ubi.endpoints, *browser.endpoints]
        self._plain: dict[str, dict[str, Endpoint]] = {}
        self._named: list[tuple[re.Pattern[str], dict[str, Endpoint]]] = []
        self._add_routes([*self.endpoints, *_described(self), *_file_endpoints()])

    def _add_routes(self, all_endpoints: list[Endpoint]) -> None:
        for endpoint in all_endpoints:
            self._plain.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        for path in [path for path in self._plain if "{" in path]:
            pattern = re.compile(re.sub(r"\{\w+\}", "([^/]+)", path))
            self._named.append((pattern, self._plain.pop(path)))

    # --- a request ---

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        raw = scope.get("raw_path") or scope["path"].encode()
        scope["path"] = path = raw.partition(b"?")[0].decode("latin-1")  # as sent: names may contain %2F
        exchange = Exchange(self, scope, receive, send, path if path in self.worked_on else _OTHER)
        connection = exchange.connection
        if connection is not None:
            connection.begin()
        try:
            if self._under_caller is None:
                await self._serve(scope, exchange)
            else:
                with self._under_caller(scope["headers"]):
                    await self._serve(scope, exchange)
        finally:
            if connection is not None:
                connection.end()

    async def _serve(self, scope: Scope, exchange: "Exchange") -> None:
        kind, started, busy = exchange.kind, time.perf_counter(), self._is_busy(exchange)
        self.worked_on[kind] += 1
        try:
            await self._answer(scope, exchange, busy)
        except Exception as error:
            await exchange.refuse(_problem_of(error, scope["path"], exchange.request_id))
        finally:
            self.worked_on[kind] -= 1
            seconds = time.perf_counter() - started
            self.metrics.answered(exchange.endpoint, exchange.status, seconds)
            if exchange.status >= 400 and not self._refusals.take(1):  # of a storm of them some are logged
                facts = {"method": scope["method"], "path": scope["path"][:200], "status": exchange.status}
                log(logging.WARNING, "refused", **facts, request_id=exchange.request_id)

    async def _answer(self, scope: Scope, exchange: "Exchange", busy: bool) -> None:
        methods, name = self._found(scope["path"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]  # uvicorn leaves out the body
        endpoint = methods.get(method)
        if methods:
            exchange.endpoint = next(iter(methods.values())).path
        self._check_admission(scope, endpoint, busy)
        if endpoint is None:
            await self._answer_without(scope, exchange, methods)
            return
        exchange.is_switch = endpoint.is_switch
        caller = self._caller(endpoint, scope["headers"])
        if endpoint.is_action:  # what became of it is in the operations of the store; a refusal is logged as well
            facts = {"path": scope["path"][:200], "tenant": caller.tenant, "request_id": exchange.request_id}
            log(logging.WARNING, "operator action", actor=caller.name, **facts)
        if "{" in endpoint.path:
            name = _decoded(name, endpoint.path.partition("{")[2].partition("}")[0])
        reply = await endpoint.handler(self, Request(scope, exchange.receive, caller, name))
        if exchange.kind == RANK:
            self._count_page()
        if not isinstance(reply, Reply):
            await exchange.respond(200, JSON, msgspec.json.encode(reply))
        elif isinstance(reply.body, bytes):
            await exchange.respond(200, reply.content_type, reply.body, reply.headers)
        else:
            await exchange.stream(reply.content_type, reply.body, reply.headers)

    def _found(self, path: str) -> tuple[dict[str, Endpoint], str]:
        """The endpoints of a path by method, and the name in it."""
        methods = self._plain.get(path)
        if methods is not None:
            return methods, ""
        for pattern, named in self._named:
            match = pattern.fullmatch(path)
            if match:
                return named, match[1]
        return {}, ""

    async def _answer_without(self, scope: Scope, exchange: "Exchange", methods: dict[str, Endpoint]) -> None:
        if self.is_preflight(scope):
            await exchange.respond(204, b"", b"")
            return
        path = scope["path"][:200]
        if not methods:
            raise Problem(404, "Not found", f"there is nothing at {path}")
        allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])
        problem = Problem(405, "Method not allowed", f"{path} takes {allowed}")
        await exchange.refuse(problem, [(b"allow", allowed.encode())])

    def _check_admission(self, scope: Scope, endpoint: Endpoint | None, busy: bool) -> None:
        if endpoint is not None and endpoint.path in ("/healthz", "/readyz"):
            return
        if self._is_open:
            _check_host(scope)
        if busy and not (endpoint is not None and (endpoint.is_switch or endpoint.path == "/metrics")):
            raise too_busy()

    def _caller(self, endpoint: Endpoint, headers: Headers) -> Principal:
        """Who calls; Problem 401 or 403 without the right key, 429 when it calls too often."""
        if endpoint.who == "anybody":
            return _ANYBODY
        if endpoint.who == "operator":
            caller = self.keys.operator(headers)
            self.switch_limits.admit(caller.tenant)
            return caller
        caller = self.keys.caller_as("operate" if endpoint.who == "switch" else endpoint.who, headers)
        (self.switch_limits if endpoint.is_switch else self.limits).admit(caller.tenant)
        return caller

    # --- how much is worked on ---

    def in_flight(self) -> int:
        """Requests being worked on."""
        return sum(self.worked_on.values())

    def _is_busy(self, exchange: "Exchange") -> bool:
        """True when this request could not be answered in time.

        The same holds for a client that sends requests and does not read the answers: a page would wait for it here,
        and leave after a kill switch has returned.
        """
        waits = exchange.connection is not None and exchange.connection.has_unread
        return self.stopping or waits or self.is_full(exchange.kind) or self.lag.is_behind()

    def is_full(self, kind: str) -> bool:
        """True when as many requests of this kind are worked on as may be, or were in this turn of the event loop.

        A page in memory is answered in one step, so it is never in flight when the next request is looked at. But
        requests that came together are answered one after the other, and the last must not wait for too many.
        """
        most = limits.MAX_IN_FLIGHT * (WAITING if kind == FEEDBACK else 1)
        return self.worked_on[kind] + (self._pages_this_turn if kind == RANK else 0) >= most

    def _count_page(self) -> None:
        if not self._pages_this_turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._pages_this_turn += 1

    def _end_turn(self) -> None:
        self._pages_this_turn = 0

    def metrics_text(self) -> bytes:
        """The page that Prometheus reads."""
        self.metrics.lag.set(self.lag.last_lag)
        self.metrics.longest_lag.set(self.lag.longest_lag)
        return self.metrics.text()

    # --- which web pages may read the answer to their feedback (CORS): those of the origins that the settings name ---

    def cross_origin(self, scope: Scope) -> RawHeaders:
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


class Exchange:
    """One request and its answer."""

    def __init__(self, app: App, scope: Scope, receive: Receive, send: Send, kind: str) -> None:
        self._app, self._receive, self._send, self.kind = app, receive, send, kind
        self.connection: GuardedProtocol | None = app.connections.by_address.get(scope.get("client"))
        self._own_headers = app.cross_origin(scope)
        self.is_switch = self._is_whole = self.started = False
        self.endpoint, self.status = "none", 0
        self.request_id = request_id_of(scope["headers"])

    async def receive(self) -> Message:
        """The next piece of the body; Problem 503 when it is whole and there is no place for the request.

        While it is waited for the request has no place among those that are worked on: otherwise a few bodies that
        never end would keep everybody else out. How many may be waited for is bounded by ``OpenConnections``.
        """
        if self._is_whole:
            return await self._receive()
        app, connection, full = self._app, self.connection, False
        app.worked_on[self.kind] -= 1
        if connection is not None:
            app.connections.wait(connection)
        try:
            message = await self._receive()
            self._is_whole = not message.get("more_body")
            full = self._is_whole and app.is_full(self.kind)
        finally:
            app.worked_on[self.kind] += 1
        if connection is not None and self._is_whole:
            app.connections.stop_waiting(connection)
        elif connection is not None:
            app.connections.hold(connection, len(message.get("body", b"")))
        if full and not self.is_switch:
            raise too_busy()
        return message

    async def respond(
        self, status: int, content_type: bytes, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send a whole answer."""
        length: RawHeaders = [(b"content-length", b"%d" % len(body))] if status != 204 else []
        await self._begin(status, content_type, [*length, *headers])
        await self._send({"type": "http.response.body", "body": body})

    async def stream(self, content_type: bytes, pieces: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Send an answer piece by piece."""
        await self._begin(200, content_type, [*headers])
        async for piece in pieces:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self, status: int, content_type: bytes, headers: RawHeaders) -> None:
        """What every answer has."""
        self.started, self.status = True, status
        kind: RawHeaders = [(b"content-type", content_type)] if content_type else []
        added = SECURITY
        if len(headers) > 1:  # more than its length
            names = {name for name, _ in headers}
            added = [header for header in SECURITY if header[0] not in names]
        given = [*kind, *headers, *added, *self._own_headers, (b"x-request-id", self.request_id.encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": given})

    async def refuse(self, problem: Problem, headers: RawHeaders | None = None) -> None:
        """Send a problem, unless an answer has begun: then all that is left is to end it."""
        if not self.started:
            given = [*_problem_headers(problem), *(headers or [])]
            await self.respond(problem.status, MEDIA_TYPE.encode(), msgspec.json.encode(problem.as_dict()), given)


def too_busy() -> Problem:
    """What a caller is told who cannot be answered in time."""
    return Problem(503, "Too busy", "more requests than can be answered in time; try again", retry_after=1)


def _problem_of(error: Exception, path: str, request_id: str) -> Problem:
    """What the caller is told, also while the store does not answer; a fault of ours is logged whole."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreUnavailableError):
        return unavailable(error)
    log(logging.ERROR, "failed", error=error, path=path, request_id=request_id)
    return Problem(500, "Internal error", "this is a fault of the service; it has been logged")


def _problem_headers(problem: Problem) -> RawHeaders:
    """What belongs to a refusal besides its body."""
    headers: RawHeaders = []
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="saferank"'))
    if problem.status in (429, 503):
        headers.append((b"retry-after", b"%d" % (problem.retry_after or 1)))
    if problem.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not wanted
    return headers


def request_id_of(headers: Headers) -> str:
    """The id that a caller gave its request, or a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value.decode()
    return os.urandom(8).hex()


def _check_host(scope: Scope) -> None:
    """Without keys only this machine may call: a foreign name in Host is a web page that was led here by its DNS."""
    host = _header(scope, b"host", b"localhost").decode("latin-1")
    if not _is_here(host):
        detail = f"without keys this service answers to localhost only, not to {host[:100]!r}"
        raise Problem(421, "Foreign host name", detail)


@functools.lru_cache(maxsize=256)
def _is_here(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    return is_loopback((name if colon and port.isdigit() else host).strip("[]"))


def _header(scope: Scope, wanted: bytes, missing: bytes = b"") -> bytes:
    for name, value in scope["headers"]:
        if name == wanted:
            return bytes(value)
    return missing


def _decoded(value: str, field: str) -> str:
    """A name as it was sent in the path, decoded once; Problem 422 when it cannot be one."""
    try:
        name = unquote(value, errors="strict")
    except UnicodeDecodeError as problem:
        raise Problem(422, INVALID, f"{field} in the path is not UTF-8", field) from problem
    try:
        return msgspec.convert(name, Id)
    except msgspec.ValidationError as problem:
        raise Problem(422, INVALID, f"{field} {explained(problem, Id)[1]}", field) from problem


# --- what is the same for everybody: the description, and the files of the dashboard ---


def _described(app: App) -> Endpoints:
    made: dict[str, Any] = {}
    described = Endpoints()

    def content() -> dict[str, Any]:
        return made or (made.setdefault("document", document(app.endpoints, app.settings)) and made)

    @described.get("/openapi.json", "The API, described for machines", JSON, "anybody")
    async def openapi(app: App, request: Request) -> object:
        """The API, described for machines."""
        return content()["document"]

    @described.get("/docs", "The API, described for people", b"text/html", "anybody")
    async def docs(app: App, request: Request) -> Reply:
        """The API, described for people."""
        return Reply(readable(content()["document"]), b"text/html; charset=utf-8")

    return described


def dashboard_files() -> dict[str, bytes]:
    """The files of the dashboard by path; ``index.html`` is at ``/``."""
    found: dict[str, bytes] = {}
    _collect(files("saferank.service") / "dashboard", "/", found)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def _collect(folder: Traversable, path: str, found: dict[str, bytes]) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir():
            _collect(entry, f"{path}{entry.name}/", found)
        elif not entry.name.startswith((".", "_")) and not entry.name.endswith(".py"):
            found[f"{path}{entry.name}"] = entry.read_bytes()


def _file_endpoints() -> Endpoints:
    added = Endpoints()
    for path, content in dashboard_files().items():
        kind = mimetypes.guess_type("index.html" if path == "/" else path)[0] or "application/octet-stream"
        text = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
        reply = Reply(content, text.encode(), ((b"cache-control", b"no-cache"),))
        added.get(path, "A file of the dashboard", kind.encode(), "anybody")(_serving(reply))
    return added


def _serving(reply: Reply) -> Any:
    async def serve(app: App, request: Request) -> Reply:
        return reply

    return serve
