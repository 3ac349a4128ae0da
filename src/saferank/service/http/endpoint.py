"""What an endpoint is: a path and a method, who may call, what is sent and answered, and the function that answers.

Everything about an endpoint is said once, where it is defined. Routing, the checks before it and the OpenAPI document
follow from that.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from saferank.service.keys import Headers, Principal
from saferank.service.wire.decoding import converted, decoded

if TYPE_CHECKING:
    from saferank.service.http.app import App

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
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


class Request:
    """One request, as its endpoint sees it. Who calls is known; the body is read when it is asked for."""

    __slots__ = ("_app", "_receive", "caller", "headers", "name", "scope")

    def __init__(self, app: "App", scope: Scope, receive: Receive, caller: Principal, name: str) -> None:
        self._app, self.scope, self._receive, self.caller, self.name = app, scope, receive, caller, name
        self.headers: Headers = scope["headers"]

    @property
    def tenant(self) -> str:
        """Whose request it is."""
        return self.caller.tenant

    async def body(self, most: int | None = None, any_type: bool = False) -> bytes:
        """The body, of at most so many bytes; Problem unless it is JSON, by its headers, or of any type."""
        return await self._app.read_body(self.headers, self._receive, most, any_type)

    async def call(self, kind: type[_Call]) -> _Call:
        """The body, understood."""
        return decoded(await self.body(), kind)

    def query(self) -> dict[str, str]:
        """The parameters of the query; of one that is there twice the last holds."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))

    def asked(self, kind: type[_Call]) -> _Call:
        """The parameters of the query, understood; others are ignored."""
        return converted(self.query(), kind, strict=False)

    def header(self, name: bytes) -> bytes | None:
        """A header, or None."""
        return next((value for given, value in self.headers if given == name), None)


Handler = Callable[["App", Request], Awaitable[object]]


class Endpoint(NamedTuple):
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

    @property
    def is_switch(self) -> bool:
        """True for a kill switch: who wants to stop something must not wait with everybody else."""
        return self.who in ("switch", "operator")

    @property
    def takes_lists(self) -> bool:
        """True when a body may be a list of structures as well as one."""
        return self.path in ("/ubi_events", "/ubi_queries")

    @property
    def is_action(self) -> bool:
        """True when it changes something that everybody sees: it is logged with who asked for it."""
        return self.is_switch or self.who == "operate"


class Endpoints(list[Endpoint]):
    """The endpoints that a module defines."""

    def get(
        self, path: str, summary: str, answer: Any, who: Who = "read", *, query: Any = None, also: tuple[int, ...] = ()
    ) -> Callable[[Handler], Handler]:
        """The function below answers GET."""
        return lambda handler: self._add(Endpoint("GET", path, summary, handler, who, answer, (), query, also))

    def post(
        self, path: str, summary: str, answer: Any, who: Who, *bodies: type[msgspec.Struct], also: tuple[int, ...] = ()
    ) -> Callable[[Handler], Handler]:
        """The function below answers POST."""
        return lambda handler: self._add(Endpoint("POST", path, summary, handler, who, answer, bodies, None, also))

    def _add(self, endpoint: Endpoint) -> Handler:
        self.append(endpoint)
        return endpoint.handler
