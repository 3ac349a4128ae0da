"""The web application: the ASGI application that uvicorn calls, and what all endpoints share.

Coming: bounds on how much is worked on, the path as it was sent, who calls, and only then the body. Leaving: every
failure is a problem that names itself, every answer has its security headers and its request id, and is counted.
"""

import asyncio
import functools
import logging
import mimetypes
import re
import time
from collections.abc import Callable
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
    RawHeaders,
    Receive,
    Reply,
    Request,
    Scope,
    Send,
    endpoints,
    too_busy,
)
from saferank.service.http.limits import (
    Bucket,
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
from saferank.service.wire.problems import Problem, unavailable
from saferank.store.contract import StoreUnavailableError

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
        request = Request(self, scope, receive, send, path if path in self.worked_on else _OTHER)
        connection = request.connection
        if connection is not None:
            connection.begin()
        try:
            if self._under_caller is None:
                await self._serve(request)
            else:
                with self._under_caller(request.headers):
                    await self._serve(request)
        finally:
            if connection is not None:
                connection.end()

    async def _serve(self, request: Request) -> None:
        kind, started, busy = request.kind, time.perf_counter(), self._is_busy(request)
        self.worked_on[kind] += 1
        try:
            await self._answer(request, busy)
        except Exception as error:
            await request.refuse(_problem_of(error, request))
        finally:
            self.worked_on[kind] -= 1
            seconds = time.perf_counter() - started
            self.metrics.answered(request.endpoint, request.status, seconds)
            if request.status >= 400 and not self._refusals.take(1):  # of a storm of them some are logged
                facts = {"method": request.method, "path": request.path[:200], "status": request.status}
                log(logging.WARNING, "refused", **facts, request_id=request.id)

    async def _answer(self, request: Request, busy: bool) -> None:
        methods, name = self._found(request.path)
        endpoint = methods.get("GET" if request.method == "HEAD" else request.method)  # uvicorn leaves out the body
        if methods:
            request.endpoint = next(iter(methods.values())).path
        self._check_admission(request, endpoint, busy)
        if endpoint is None:
            await self._answer_without(request, methods)
            return
        request.is_switch = endpoint.is_switch
        request.caller = caller = self._caller(endpoint, request.headers)
        if endpoint.is_action:  # what became of it is in the operations of the store; a refusal is logged as well
            facts = {"path": request.path[:200], "tenant": caller.tenant, "request_id": request.id}
            log(logging.WARNING, "operator action", actor=caller.name, **facts)
        if "{" in endpoint.path:
            name = _decoded(name, endpoint.path.partition("{")[2].partition("}")[0])
        request.tenant, request.name = caller.tenant, name
        reply = await endpoint.handler(self, request)
        if request.kind == RANK:
            self._count_page()
        if not isinstance(reply, Reply):
            await request.respond(200, JSON, msgspec.json.encode(reply))
        elif isinstance(reply.body, bytes):
            await request.respond(200, reply.content_type, reply.body, reply.headers)
        else:
            await request.stream(reply.content_type, reply.body, reply.headers)

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

    async def _answer_without(self, request: Request, methods: dict[str, Endpoint]) -> None:
        if self.is_preflight(request):
            await request.respond(204, b"", b"")
            return
        path = request.path[:200]
        if not methods:
            raise Problem(404, "Not found", f"there is nothing at {path}")
        allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])
        problem = Problem(405, "Method not allowed", f"{path} takes {allowed}")
        await request.refuse(problem, [(b"allow", allowed.encode())])

    def _check_admission(self, request: Request, endpoint: Endpoint | None, busy: bool) -> None:
        if endpoint is not None and endpoint.path in ("/healthz", "/readyz"):
            return
        if self._is_open:
            _check_host(request)
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

    def _is_busy(self, request: Request) -> bool:
        """True when this request could not be answered in time.

        The same holds for a client that sends requests and does not read the answers: a page would wait for it here,
        and leave after a kill switch has returned.
        """
        waits = request.connection is not None and request.connection.has_unread
        return self.stopping or waits or self.is_full(request.kind) or self.lag.is_behind()

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

    def cross_origin(self, request: Request) -> RawHeaders:
        """The headers that let the page read the answer; none for others."""
        if not self._origins or request.path not in BROWSER_PATHS:
            return []
        origin = request.header(b"origin")
        if origin is None or origin not in self._origins:
            return [(b"vary", b"Origin")]
        allowed = [(b"vary", b"Origin"), (b"access-control-allow-origin", origin)]
        return [*allowed, *_PREFLIGHT] if self.is_preflight(request) else allowed

    def is_preflight(self, request: Request) -> bool:
        """True for the question of a browser whether the page may send feedback."""
        return (
            bool(self._origins)
            and request.method == "OPTIONS"
            and request.path in BROWSER_PATHS
            and request.header(b"origin") in self._origins
            and request.header(b"access-control-request-method") == b"POST"
        )


def _problem_of(error: Exception, request: Request) -> Problem:
    """What the caller is told, also while the store does not answer; a fault of ours is logged whole."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreUnavailableError):
        return unavailable(error)
    log(logging.ERROR, "failed", error=error, path=request.path, request_id=request.id)
    return Problem(500, "Internal error", "this is a fault of the service; it has been logged")


def _check_host(request: Request) -> None:
    """Without keys only this machine may call: a foreign name in Host is a web page that was led here by its DNS."""
    given = request.header(b"host")
    host = "localhost" if given is None else given.decode("latin-1")
    if not _is_here(host):
        detail = f"without keys this service answers to localhost only, not to {host[:100]!r}"
        raise Problem(421, "Foreign host name", detail)


@functools.lru_cache(maxsize=256)
def _is_here(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    return is_loopback((name if colon and port.isdigit() else host).strip("[]"))


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


# --- what is the same for every caller: the description, and the files of the dashboard ---


def _described(app: App) -> Endpoints:
    described = Endpoints()
    content = functools.cache(lambda: document(app.endpoints, app.settings))

    @described.get("/openapi.json", "The API, described for machines", JSON, "anybody")
    async def openapi(app: App, request: Request) -> object:
        """The API, described for machines."""
        return content()

    @described.get("/docs", "The API, described for people", b"text/html", "anybody")
    async def docs(app: App, request: Request) -> Reply:
        """The API, described for people."""
        return Reply(readable(content()), b"text/html; charset=utf-8")

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
