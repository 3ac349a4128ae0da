"""The endpoints of the service: the two calls, acting, looking, health.

Everything about an endpoint is said once, where it is defined: its path and method, who may call, what is sent and
answered, and the function that answers. Routing, the checks before it and the OpenAPI document follow from that.
Before the table: a request and its answer, as an endpoint and the application see them.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Struct, structs

from saferank._version import __version__
from saferank.service import limits
from saferank.service.http.limits import GuardedProtocol, check_headers, too_large
from saferank.service.http.metrics import CONTENT_TYPE
from saferank.service.keys import Headers, Principal
from saferank.service.settings import is_loopback
from saferank.service.wire.calls import (
    INVALID,
    Answer,
    FeedbackAnswer,
    FeedbackBatch,
    FeedbackCall,
    FeedbackResults,
    ForgetCall,
    Id,
    KillCall,
    RankAnswer,
    RankCall,
    ResetCall,
    RollbackCall,
    SettingsCall,
    TrafficCall,
    about,
    converted,
    decoded,
    moment,
    values,
)
from saferank.service.wire.exports import PAGE_FORMATS, ExportFormat, Facts, lines_of
from saferank.service.wire.problems import MEDIA_TYPE, Problem
from saferank.service.wire.views import (
    Arm,
    ContextList,
    ContextView,
    EffectView,
    ForgetView,
    ImpressionView,
    LeaderAt,
    LeaderChanges,
    OverviewView,
    ShadowView,
    SwitchView,
    TrafficView,
)

if TYPE_CHECKING:
    from saferank.service.http.app import App

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]
_Call = TypeVar("_Call")

Who = Literal["anybody", "feedback", "rank", "read", "operate", "switch", "operator"]
"""Who may call: with no key, or with one of a role that is enough (``keys.py``). ``switch`` (role operate) and
``operator`` (of all tenants) are kill switches, which have limits of their own and are answered under any load."""

NDJSON, JSON = b"application/x-ndjson", b"application/json"


class Reply(NamedTuple):
    """An answer that is not the JSON of a structure."""

    body: bytes | AsyncIterator[bytes]
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


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
_REQUEST_ID = re.compile(rb"[!-~]{1,128}")


class Request:
    """One request and its answer. Its endpoint knows who calls; the body is read when it is asked for."""

    caller: Principal
    tenant: str
    name: str  # in its path
    is_switch = _is_whole = started = False
    endpoint, status = "none", 0

    def __init__(self, app: "App", scope: Scope, receive: Receive, send: Send, kind: str) -> None:
        self._app, self._receive, self._send, self.kind = app, receive, send, kind
        self.scope, self.method, self.path = scope, scope["method"], scope["path"]
        self.headers: Headers = scope["headers"]
        self.connection: GuardedProtocol | None = app.connections.by_address.get(scope.get("client"))
        self._own_headers = app.cross_origin(self)
        given = [value for name, value in self.headers if name == b"x-request-id" and _REQUEST_ID.fullmatch(value)]
        self.id = given[0].decode() if given else os.urandom(8).hex()

    # --- coming ---

    async def body(self, most: int | None = None, any_type: bool = False) -> bytes:
        """The whole body, of at most ``most`` bytes.

        Problem 415 unless it is JSON, by its headers, or of any type, 413 as soon as it is too large, 408 when it takes
        too long.
        """
        limit = min(most or limits.MAX_BODY_BYTES, limits.MAX_BODY_BYTES)
        if not any_type:
            check_headers(self.headers, limit)
        try:
            async with asyncio.timeout(limits.BODY_SECONDS):
                message = await self._next_piece()
                body: bytes | bytearray = message.get("body", b"")
                if message.get("more_body"):
                    body = bytearray(body)  # grows without being copied, however small the pieces
                while message.get("more_body") and len(body) <= limit:
                    message = await self._next_piece()
                    body += message.get("body", b"")
        except TimeoutError as problem:
            late = f"the body took more than {limits.BODY_SECONDS:g} s to arrive"
            raise Problem(408, "Body too slow", late) from problem
        if len(body) > limit:
            raise too_large(limit)
        if message["type"] == "http.disconnect":
            raise Problem(400, "Body cut off", "the connection ended before the body did")
        return bytes(body)

    async def call(self, kind: type[_Call]) -> _Call:
        """The body, understood."""
        return decoded(await self.body(), kind)

    def query(self) -> dict[str, str]:
        """The parameters of the query; of one that is there twice the last holds."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))

    def asked(self, kind: type[_Call]) -> _Call:
        """The parameters of the query, understood; Problem 422 for one that is unknown, which may be a slip."""
        return converted(self.query(), kind, strict=False)

    def header(self, wanted: bytes) -> bytes | None:
        """A header, or None."""
        for name, value in self.headers:
            if name == wanted:
                return value
        return None

    async def _next_piece(self) -> Message:
        """The next piece of the body; Problem 503 when it is whole and there is no place for the request.

        While it is waited for the request has no place among those that are worked on: otherwise a few bodies that
        never end would keep all other callers out. How many may be waited for is bounded by ``OpenConnections``.
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

    # --- leaving ---

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
        given = [*kind, *headers, *added, *self._own_headers, (b"x-request-id", self.id.encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": given})

    async def refuse(self, problem: Problem, headers: RawHeaders | None = None) -> None:
        """Send a problem, unless an answer has begun: then all that is left is to end it."""
        if not self.started:
            given = [*_problem_headers(problem), *(headers or [])]
            await self.respond(problem.status, MEDIA_TYPE.encode(), msgspec.json.encode(problem.as_dict()), given)


def too_busy() -> Problem:
    """What a caller is told who cannot be answered in time."""
    return Problem(503, "Too busy", "more requests than can be answered in time; try again", retry_after=1)


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


Handler = Callable[["App", Request], Awaitable[object]]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint. Its function's first line is its description."""

    method: str
    path: str
    summary: str
    handler: Handler
    who: Who
    answer: Any  # a structure, or a media type
    bodies: tuple[type[msgspec.Struct], ...] = ()
    query: type[msgspec.Struct] | None = None
    also: tuple[int, ...] = ()  # refusals that do not follow from the rest
    name: str = ""  # of the operation, if it is not that of the function

    @cached_property
    def is_switch(self) -> bool:
        """True for a kill switch: who wants to stop something must not wait with the other callers."""
        return self.who in ("switch", "operator")

    @cached_property
    def is_action(self) -> bool:
        """True when it changes something that every caller sees: it is logged with who asked for it."""
        return self.is_switch or self.who == "operate"


class Endpoints(list[Endpoint]):
    """The endpoints that a module defines."""

    def get(
        self, path: str, summary: str, answer: Any, who: Who = "read", *, query: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """The function below answers GET."""
        return lambda handler: self._add(Endpoint("GET", path, summary, handler, who, answer, (), query, **more))

    def post(
        self, path: str, summary: str, answer: Any, who: Who, *bodies: type[msgspec.Struct], **more: Any
    ) -> Callable[[Handler], Handler]:
        """The function below answers POST."""
        return lambda handler: self._add(Endpoint("POST", path, summary, handler, who, answer, bodies, **more))

    def _add(self, endpoint: Endpoint) -> Handler:
        self.append(endpoint)
        return endpoint.handler


# --- the table ---


RANK, FEEDBACK = "/v1/rank", "/v1/feedback"
LARGEST_BROWSER_BODY = 256_000
"""Feedback keys are in web pages: a visitor who has one may not send megabytes to be parsed."""

endpoints = Endpoints()

# --- the two calls ---


@endpoints.post(RANK, "The page to show", RankAnswer, "rank", RankCall)
async def rank(app: "App", request: Request) -> RankAnswer:
    """Which page to show, and the token that its clicks are reported with."""
    call = await request.call(RankCall)
    check_items(app, call)
    answer = await app.server.rank(request.tenant, call)
    return answer if call.explain or answer.explanation is UNSET else structs.replace(answer, explanation=UNSET)


def check_items(app: "App", call: RankCall) -> None:
    """Problem 422 for a rank call with more items than the settings allow."""
    longest = app.settings.max_items
    for name, items in (("base_ranking", call.base_ranking), ("candidates", call.candidates)):
        if len(items) > longest:
            raise Problem(422, INVALID, f"{name} must have at most {longest} entries", name)


@endpoints.post(
    FEEDBACK,
    "What was clicked on a page, or a batch of such reports",
    (FeedbackAnswer, FeedbackResults),
    "feedback",
    FeedbackCall,
    FeedbackBatch,
    also=(404, 409),
)
async def feedback(app: "App", request: Request) -> FeedbackAnswer | FeedbackResults:
    """Answered when the clicks are on disk."""
    body = await request.body(largest_body(request))
    if body.startswith(b'{"batch"') or (b'"batch"' in body and "batch" in values(body)):
        return await _batch(app, request, body)
    call = decoded(body, FeedbackCall)
    check_token(request.caller.role, call.token is not None, "impression_id")
    return await reported(app, request.tenant, call)


async def reported(app: "App", tenant: str, call: FeedbackCall) -> FeedbackAnswer:
    """What became of one report; a refusal is raised."""
    (result,) = await app.server.feedback(tenant, [call])
    if isinstance(result, Problem):
        raise result
    return result


async def _batch(app: "App", request: Request, body: bytes) -> FeedbackResults:
    calls = decoded(body, FeedbackBatch).batch
    if len(calls) > 1:
        app.limits.admit(request.tenant, len(calls) - 1)
    for place, call in enumerate(calls):
        check_token(request.caller.role, call.token is not None, f"batch[{place}].impression_id")
    results = await app.server.feedback(request.tenant, calls)
    return FeedbackResults([result.as_dict() if isinstance(result, Problem) else result for result in results])


def largest_body(request: Request) -> int | None:
    """Bytes that a caller may report with; None: as many as anybody."""
    return LARGEST_BROWSER_BODY if request.caller.role == "feedback" else None


def check_token(role: str, has_token: bool, field: str) -> None:
    """Problem 403 for a report of a web page that names its page by anything but the token."""
    if role == "feedback" and not has_token:
        raise Problem(403, "Rank key needed", f"{field}: a feedback key needs the token of the page", field)


# --- acting ---


@endpoints.post(
    "/v1/kill", "Serve production's ranking everywhere, or end that", SwitchView, "switch", KillCall,
    name="kill_everywhere",
)  # fmt: skip
@endpoints.post(
    "/v1/contexts/{context}/kill", "Serve production's ranking in a context, or end that", SwitchView, "switch",
    KillCall,
)  # fmt: skip
async def kill(app: "App", request: Request) -> SwitchView:
    """Durable: it holds after a restart as well. No other call and no load refuses it."""
    call = await request.call(KillCall)
    return await app.server.kill(request.tenant, request.name or None, call.on, call.why)


@endpoints.post(
    "/v1/operator/kill", "Serve production's ranking to all tenants, or end that", SwitchView, "operator", KillCall
)
async def kill_all_tenants(app: "App", request: Request) -> SwitchView:
    """Needs an operator key. Durable; no tenant can end it."""
    call = await request.call(KillCall)
    return await app.server.kill_all_tenants(call.on, call.why)


@endpoints.post(
    "/v1/traffic", "Share of visitors whose pages the policy may choose", TrafficView, "operate", TrafficCall
)
async def set_traffic(app: "App", request: Request) -> TrafficView:
    """Durable, and obeyed by every server when it returns. A visitor of a share is in every larger one."""
    return await app.server.set_traffic(request.tenant, await request.call(TrafficCall))


@endpoints.post("/v1/forget", "Delete the pages of a session or a source", ForgetView, "operate", ForgetCall)
async def forget(app: "App", request: Request) -> ForgetView:
    """While servers run. What was learnt from the pages stays, as sums."""
    return await app.server.forget(request.tenant, await request.call(ForgetCall))


@endpoints.post("/v1/contexts/{context}/rollback", "Back to an earlier leader", ContextView, "operate", RollbackCall)
async def rollback(app: "App", request: Request) -> ContextView:
    """What was learnt after it is forgotten; the history is not."""
    call = await request.call(RollbackCall)
    return await app.server.rollback(request.tenant, request.name, call.version, call.why)


@endpoints.post(
    "/v1/contexts/{context}/reset", "Forget everything that was learnt in a context", ContextView, "operate", ResetCall
)
async def reset(app: "App", request: Request) -> ContextView:
    """Learning begins again from production's ranking; pages that are open do not count, the history stays.

    The context takes the policy, the rule and the other terms that the service is set to now, but for those that the
    call names.
    """
    call = await request.call(ResetCall)
    return await app.server.reset(request.tenant, request.name, call.why, call.certificate_days, call.trust)


@endpoints.post(
    "/v1/contexts/{context}/settings", "Mode and holdout share of a context", ContextView, "operate", SettingsCall
)
async def set_context(app: "App", request: Request) -> ContextView:
    """Durable. The call replaces the one before: what it leaves out is as the service is set."""
    return await app.server.set_context(request.tenant, request.name, await request.call(SettingsCall))


# --- looking ---


@endpoints.get("/v1/overview", "Everything at a glance", OverviewView)
async def overview(app: "App", request: Request) -> OverviewView:
    """One sentence, the effect, the funnel, the newest changes, feedback and alarms, over all contexts."""
    return await app.server.overview(request.tenant)


@endpoints.get("/v1/contexts", "All contexts", ContextList)
async def contexts(app: "App", request: Request) -> ContextList:
    """The contexts of the tenant with their leaders."""
    return await app.server.list_contexts(request.tenant)


@endpoints.get("/v1/contexts/{context}", "A context", ContextView)
async def context(app: "App", request: Request) -> ContextView:
    """Leader, pairs, versions, arms and switches of a context."""
    return await app.server.show_context(request.tenant, request.name)


@endpoints.get("/v1/effect", "Served pages beside the holdout, over all contexts", EffectView, name="effect_everywhere")
@endpoints.get("/v1/contexts/{context}/effect", "Served pages beside the holdout, in a context", EffectView)
async def effect(app: "App", request: Request) -> EffectView:
    """Intervals that hold at every look, and how far the guardrail is from stopping."""
    return await app.server.effect(request.tenant, request.name or None)


class LeaderQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which leader."""

    at: Annotated[
        str,
        about("A version, or a moment like 2026-03-01T12:00:00Z; now if absent.", min_length=1, max_length=64),
    ] = ""


@endpoints.get("/v1/contexts/{context}/leader", "The leader at a version or a moment", LeaderAt, query=LeaderQuery)
async def leader(app: "App", request: Request) -> LeaderAt:
    """Who led, and from when to when."""
    return await app.server.leader_at(request.tenant, request.name, request.asked(LeaderQuery).at or None)


@endpoints.get("/v1/contexts/{context}/changes", "Changes of the leader, with evidence", LeaderChanges)
async def changes(app: "App", request: Request) -> LeaderChanges:
    """Every leader there was, oldest first."""
    return await app.server.changes(request.tenant, request.name)


@endpoints.get("/v1/shadow", "What shadow pages tell, all contexts", ShadowView)
@endpoints.get("/v1/contexts/{context}/shadow", "What shadow pages tell", ShadowView, name="context_shadow")
async def shadow(app: "App", request: Request) -> ShadowView:
    """How often the policy's page differs from production's, and the known part of its clicks."""
    return await app.server.shadow(request.tenant, request.name or None)


@endpoints.get("/v1/impressions/{impression_id}", "The full story of a page", ImpressionView)
async def impression(app: "App", request: Request) -> ImpressionView:
    """What was shown, why, and what was clicked."""
    return await app.server.impression(request.tenant, request.name)


class ExportQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """What of the log, and in which form."""

    context: Annotated[Id, about("Only this context.")] = ""
    cursor: Annotated[
        str,
        about(
            "`start`, or the X-Saferank-Cursor of the answer before: only lines that are final and were not told. "
            "Without it, everything as it is now.",
            max_length=64,
        ),
    ] = ""
    arm: Annotated[Arm | Literal[""], about("With sessions and ubi: only pages of this arm.")] = ""
    format: Annotated[ExportFormat, about("events: everything; sessions or ubi: closed pages with their clicks.")] = (
        "events"
    )


@endpoints.get("/v1/export", "The log as JSON lines", NDJSON, query=ExportQuery, also=(404,))
async def export(app: "App", request: Request) -> Reply:
    """Every event of the tenant, for an archive or an audit elsewhere; or its pages, for other programs."""
    asked = request.asked(ExportQuery)
    if asked.arm and asked.format not in PAGE_FORMATS:
        detail = f"arm: {asked.format} are of all arms; {' and '.join(PAGE_FORMATS)} can be of one"
        raise Problem(422, INVALID, detail, "arm")
    bounds = await app.server.export_bounds(request.tenant, request.query().get("cursor"))
    lines = _lines(app.server.export(request.tenant, asked.context or None, bounds), asked, moment(app.server.now()))
    first = await anext(lines, None)  # a refusal must come before the answer begins
    headers = ((b"x-saferank-cursor", bounds.cursor.encode()),) if "cursor" in request.query() else ()
    return Reply(_with_line_ends(first, lines), NDJSON, headers)


async def _lines(log: AsyncIterator[Facts], asked: ExportQuery, now: str) -> AsyncIterator[str]:
    async for facts in log:
        for line in lines_of(facts, asked.format, now, asked.arm or None):
            yield line


async def _with_line_ends(first: str | None, lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    if first is not None:
        yield first.encode() + b"\n"
    async for line in lines:
        yield line.encode() + b"\n"


# --- for those who run it ---


class Health(Answer):
    """The process answers."""

    status: Literal["ok"]
    version: str


@endpoints.get("/healthz", "Is the process alive", Health, "anybody")
async def healthz(app: "App", request: Request) -> Health:
    """Always ok: a process that answers is alive."""
    return Health("ok", __version__)


@endpoints.get("/readyz", "Can it keep its promises", Health, "anybody", also=(503,))
async def readyz(app: "App", request: Request) -> Health:
    """503 while it stops, and while the disk does not take what must be written."""
    reason = "the service is stopping" if app.stopping else app.server.not_ready()
    if reason is not None:
        raise Problem(503, "Not ready", reason, retry_after=1)
    return Health("ok", __version__)


@endpoints.get("/metrics", "Metrics", b"text/plain", "anybody", also=(401, 403, 503))
async def metrics(app: "App", request: Request) -> Reply:
    """Open to this machine; from elsewhere, or through a proxy, it needs a key of role read or operate."""
    client = request.scope.get("client")
    relayed = any(name in (b"forwarded", b"x-forwarded-for") for name, _ in request.headers)
    if client is None or not is_loopback(client[0]) or relayed:
        app.keys.caller_as("read", request.headers)
    return Reply(app.metrics_text(), CONTENT_TYPE.encode())
