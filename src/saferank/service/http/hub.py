"""What all endpoints share: the settings, the engine, keys, limits and metrics of a service, and reading its requests.

Who calls is asked before anything of a body is read. Its type, its size and how long it may take are checked before it
is understood. Twice the load must be refused politely, never piled up: a request that waits in a queue of seconds is of
no use to the page that needs it.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Path, Request
from pydantic import BaseModel, TypeAdapter, ValidationError

from saferank.service.http.metrics import Metrics
from saferank.service.interface import EngineInterface
from saferank.service.keys import Headers, Keys
from saferank.service.settings import Settings
from saferank.service.wire import strict_json
from saferank.service.wire.calls import ID_PATTERN, LONGEST_ID, Id, RankCall
from saferank.service.wire.problems import Problem
from saferank.service.wire.validation import problem_of, sentence

SWITCHES_A_SECOND, SWITCHES_AT_ONCE = 10.0, 100
"""Kill calls of a tenant, and of all operators: more than anybody needs, and a bound all the same."""

OPERATORS = ""
"""Who calls, where it is an operator; no tenant can be called so."""

_Call = TypeVar("_Call", bound=BaseModel)
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


# --- limits ---

BEAT_SECONDS = 0.05


class Pulse:
    """Watches how far the event loop is behind: a beat that is overdue means that everything else is, too."""

    def __init__(self, largest_lag: float) -> None:
        self._largest = largest_lag
        self._due = math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None
        self.last_lag = self.longest_lag = 0.0

    def start(self) -> None:
        """Begin to beat on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._schedule(self._loop.time())

    def stop(self) -> None:
        """No more beats."""
        if self._next is not None:
            self._next.cancel()

    def is_behind(self) -> bool:
        """True when the loop is too far behind for new work."""
        return self._loop is not None and self._loop.time() - self._due > self._largest

    def _schedule(self, now: float) -> None:
        assert self._loop is not None
        self._due = now + BEAT_SECONDS
        self._next = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        assert self._loop is not None
        now = self._loop.time()
        self.last_lag = max(0.0, now - self._due)
        self.longest_lag = max(self.longest_lag, self.last_lag)
        self._schedule(now)


class Bucket:
    """Tokens that fill up at a steady rate; every request takes some.

    >>> now = 0.0
    >>> bucket = Bucket(rate=2.0, burst=3, clock=lambda: now)
    >>> [bucket.take(1) for _ in range(4)]
    [0.0, 0.0, 0.0, 0.5]
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._at = float(burst), clock()

    def take(self, tokens: int) -> float:
        """Zero if there were enough; otherwise nothing is taken, and the seconds until there will be."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        wanted = min(tokens, self._burst)  # more than a bucket can never be had at once
        if self._level >= wanted:
            self._level -= wanted
            return 0.0
        return (wanted - self._level) / self._rate


class TenantLimits:
    """A bucket for every tenant; rate 0 is no limit."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, Bucket] = {}

    def admit(self, tenant: str, requests: int = 1) -> None:
        """Problem 429 when the tenant has sent too much."""
        if not self._rate:
            return
        if tenant not in self._buckets:
            self._buckets[tenant] = Bucket(self._rate, self._burst, self._clock)
        wait = self._buckets[tenant].take(requests)
        if wait:
            detail = f"tenant {tenant} may send {self._rate:g} requests a second; try again in {wait:.1f} s"
            raise Problem(429, "Too many requests", detail, retry_after=math.ceil(wait))


# --- bodies ---


def check_headers(headers: Iterable[tuple[bytes, bytes]], limit: int) -> None:
    """Problem for a body that is not JSON or is declared too large."""
    content_type = length = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise Problem(415, "Unsupported encoding", "send the body as it is, without Content-Encoding")
    if content_type != b"application/json":
        _check_content_type(content_type.decode("latin-1"))
    if length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise too_large(limit)


def _check_content_type(given: str) -> None:
    media_type, _, parameters = given.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() == "application/json" and charset in ("", "utf-8", "utf8"):
        return
    found = f"found {given[:100]!r}" if given else "it is missing"
    raise Problem(415, "Unsupported content type", f"Content-Type must be application/json; {found}")


def too_large(limit: int) -> Problem:
    """The refusal of a body beyond the limit."""
    return Problem(413, "Body too large", f"the body must have at most {limit} bytes; send less at a time")


async def read_body(receive: Receive, limit: int, seconds: float) -> bytes:
    """The whole body; Problem 413 as soon as it is too large, 408 when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
            body: bytes | bytearray = message.get("body", b"")
            if message.get("more_body"):
                body = bytearray(body)  # grows without being copied, however small the pieces
            while message.get("more_body") and len(body) <= limit:
                message = await receive()
                body += message.get("body", b"")
    except TimeoutError as problem:
        raise Problem(408, "Body too slow", f"the body took more than {seconds:g} s to arrive") from problem
    if len(body) > limit:
        raise too_large(limit)
    if message["type"] == "http.disconnect":
        raise Problem(400, "Body cut off", "the connection ended before the body did")
    return bytes(body)


def understood(kind: type[_Call], content: Any) -> _Call:
    """Checked content of a body; Problem 422 that names the field otherwise."""
    try:
        return kind.model_validate(content)
    except ValidationError as problem:
        raise problem_of(problem) from problem


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    content = strict_json.loads(body)
    if not isinstance(content, dict):
        raise Problem(422, "Invalid request", "the body must be a JSON object")
    return content


# --- the service ---


class Hub:
    """One running service, as its endpoints see it."""

    def __init__(self, settings: Settings, engine: EngineInterface) -> None:
        self.settings = settings
        self.engine = _traced(engine) if settings.traces else engine
        self.keys = Keys(settings.tenants, settings.operator_keys)
        self.limits = TenantLimits(settings.tenant_rate, settings.tenant_burst, time.monotonic)
        self.switch_limits = TenantLimits(SWITCHES_A_SECOND, SWITCHES_AT_ONCE, time.monotonic)
        self.pulse = Pulse(settings.max_lag_seconds)
        self.metrics = Metrics(engine.counters)
        self.stopping = False

    async def body(self, headers: Headers, receive: Receive, most: int | None = None) -> bytes:
        """The body of a request whose sender is known, of at most so many bytes."""
        limit = min(most or self.settings.max_body_bytes, self.settings.max_body_bytes)
        check_headers(headers, limit)
        return await read_body(receive, limit, self.settings.body_seconds)

    async def call(self, kind: type[_Call], headers: Headers, receive: Receive) -> _Call:
        """The body of a request, understood."""
        return understood(kind, parsed(await self.body(headers, receive)))

    def check_items(self, call: RankCall) -> None:
        """Problem 422 for a rank call with more items than the settings allow."""
        longest = self.settings.max_items
        for name, items in (("base_ranking", call.base_ranking), ("candidates", call.candidates)):
            if len(items) > longest:
                raise Problem(422, "Invalid request", f"{name} must have at most {longest} entries", name)


def _traced(engine: EngineInterface) -> EngineInterface:
    from saferank.service.http.adapters.tracing import traced  # imports OpenTelemetry, which is optional

    return traced(engine)


# --- what the ordinary endpoints ask for by type ---

_ID = TypeAdapter(Id)
_NAMED = {"minLength": 1, "maxLength": LONGEST_ID, "pattern": ID_PATTERN}


def hub_of(request: Request) -> Hub:
    """The service that the application belongs to."""
    hub: Hub = request.app.state.hub
    return hub


def tenant_of(request: Request) -> str:
    """The tenant that calls, with a rank key; Problem 429 when it calls too often."""
    hub = hub_of(request)
    tenant = hub.keys.ranking_tenant(request.scope["headers"])
    hub.limits.admit(tenant)
    return tenant


def switching_tenant(request: Request) -> str:
    """The tenant that calls a kill switch, with a rank key. Other calls do not count against its limit."""
    hub = hub_of(request)
    tenant = hub.keys.ranking_tenant(request.scope["headers"])
    hub.switch_limits.admit(tenant)
    return tenant


def check_operator(request: Request) -> None:
    """Problem 401 or 403 unless the caller has an operator key."""
    hub = hub_of(request)
    hub.keys.check_operator(request.scope["headers"])
    hub.switch_limits.admit(OPERATORS)


def context_name(context: Annotated[str, Path(json_schema_extra=_NAMED, description="Name of the context.")]) -> str:
    """The name of a context as it was sent in the path, decoded once."""
    return _decoded(context, "context")


def impression_name(impression_id: Annotated[str, Path(json_schema_extra=_NAMED)]) -> str:
    """The id of an impression in the path."""
    return _decoded(impression_id, "impression_id")


def checked(value: str, field: str) -> str:
    """A name from outside; Problem 422 when it cannot be one."""
    try:
        return _ID.validate_python(value)
    except ValidationError as problem:
        reason = sentence(problem.errors(include_url=False, include_input=False)[0])
        raise Problem(422, "Invalid request", f"{field} {reason}", field) from problem


def _decoded(value: str, field: str) -> str:
    try:
        return checked(unquote(value, errors="strict"), field)
    except UnicodeDecodeError as problem:
        raise Problem(422, "Invalid request", f"{field} in the path is not UTF-8", field) from problem


TheHub = Annotated[Hub, Depends(hub_of)]
Tenant = Annotated[str, Depends(tenant_of)]
SwitchingTenant = Annotated[str, Depends(switching_tenant)]
Operator = Depends(check_operator)
ContextName = Annotated[str, Depends(context_name)]
ImpressionName = Annotated[str, Depends(impression_name)]
