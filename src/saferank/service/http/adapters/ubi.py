"""OpenSearch User Behavior Insights (UBI 1.2 and 1.3) over the two calls: events, queries, and a rank call.

``docs/engineers/ubi.md`` says what each field means here. Fields that are not named below are accepted and ignored.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from starlette.routing import Route

from saferank.service.http.adapters import calls
from saferank.service.http.hub import Hub, understood
from saferank.service.http.routes.hot import LARGEST_BROWSER_BODY
from saferank.service.wire import strict_json
from saferank.service.wire.calls import LARGEST_BATCH, MOST_POSITIONS, FeedbackAnswer, FeedbackCall, RankCall, misuse
from saferank.service.wire.problems import Problem
from saferank.service.wire.validation import problem_of

USUAL_POSITIONS = 10


def _moment(value: Any) -> str | int:
    _text_or_number(value)
    if isinstance(value, str) and not value.isdigit():
        try:
            datetime.fromisoformat(value.upper())
        except ValueError:
            raise misuse("", f"{value[:50]!r} is neither ISO 8601 nor milliseconds since 1970") from None
    found: str | int = value
    return found


def _text_or_number(value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise misuse("", "must be a text or a whole number")
    return value


def _ordinal(value: Any) -> Any:
    """A whole number, or an object whose ``index`` is one. It is not used: the service knows where an item was."""
    where, number = ("index", value.get("index")) if isinstance(value, dict) else ("", value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise misuse(where, "must be a whole number" + ("" if where else ", or an object with one as index"))
    return value


Moment = Annotated[Any, PlainValidator(_moment, json_schema_input_type=str | int)]
ObjectId = Annotated[Any, PlainValidator(_text_or_number, json_schema_input_type=str | int)]
Ordinal = Annotated[Any, PlainValidator(_ordinal, json_schema_input_type=int | dict[str, Any])]


class Document(BaseModel):
    """A part of a UBI document."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class Object(Document):
    """What was clicked."""

    object_id: ObjectId


class UbiPosition(Document):
    """Where it stood."""

    ordinal: Ordinal = None


class Attributes(Document):
    """The extensible part of an event."""

    object: Object | None = None
    position: UbiPosition | None = None


class UbiEvent(Document):
    """Something that a user did."""

    action_name: str = Field(max_length=100)
    timestamp: Moment
    query_id: str | None = None
    event_attributes: Attributes | None = None


class QueryAttributes(Document):
    """The extensible part of a query; a rank call has its page size and its candidates here."""

    k: int | None = Field(default=None, ge=1, le=MOST_POSITIONS)
    candidates: list[str] = []


class UbiQuery(Document):
    """A query and what was found."""

    user_query: str
    timestamp: Moment | None = None
    query_id: str | None = None
    client_id: str | None = None
    query_response_id: str | None = None
    query_response_hit_ids: list[ObjectId] | None = None
    query_response_object_ids: list[ObjectId] | None = None
    query_attributes: QueryAttributes | None = None

    @property
    def hits(self) -> list[str]:
        """What was found, best first, by the name of either version."""
        return [str(hit) for hit in self.query_response_hit_ids or self.query_response_object_ids or ()]

    @property
    def hits_name(self) -> str:
        """The name that the hits have."""
        is_older = not self.query_response_hit_ids and self.query_response_object_ids
        return "query_response_object_ids" if is_older else "query_response_hit_ids"


class Reported(NamedTuple):
    """A report, and the names of its fields in the document."""

    call: FeedbackCall
    names: calls.Names


_Read = TypeVar("_Read", bound=Document)
_Made = Reported | str | Problem
"""What a document is: a report, an action that is ignored, or refused."""


def ubi_routes(hub: Hub) -> list[Route]:
    """All routes of the adapter."""
    ubi = Ubi(hub)
    return [
        Route("/ubi_events", ubi.events, methods=["POST"]),
        Route("/ubi_queries", ubi.queries, methods=["POST"]),
        Route("/ubi_rank", ubi.rank, methods=["POST"]),
    ]


class Ubi:
    """Answers UBI's calls from the two calls of the service."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._page_id = hub.settings.ubi_page_id.split(".")
        self._clicks = frozenset(hub.settings.ubi_click_actions)

    async def events(self, request: Request) -> Response:
        """Clicks are reported for their pages; other actions are counted by name and ignored."""
        return await self._report(request, UbiEvent, self._made_of_event)

    async def queries(self, request: Request) -> Response:
        """A query says that its page was shown, and may say what was on it: a report without clicks."""
        return await self._report(request, UbiQuery, self._made_of_query)

    async def rank(self, request: Request) -> Response:
        """The page for a query: the hits are production's ranking."""
        hub = self._hub
        tenant = hub.keys.ranking_tenant(request.scope["headers"])
        hub.limits.admit(tenant)
        query = await hub.call(UbiQuery, request.scope["headers"], request.receive)
        call, names = rank_call(query)
        try:
            hub.check_items(call)
        except Problem as problem:
            raise calls.renamed(problem, names) from problem
        page = await calls.rank(hub, tenant, call)
        answer = {
            "query_id": page.impression_id,
            "query_response_id": page.impression_id,
            "query_response_hit_ids": page.ranking,
            "user_query": query.user_query,
            "hits": {
                "total": {"value": len(page.ranking), "relation": "eq"},
                "hits": [{"_id": item} for item in page.ranking],
            },
            "ext": {"ubi": {"query_id": page.impression_id}},
            "token": page.token,
        }
        return _json(answer)

    async def _report(
        self, request: Request, kind: type[_Read], made_of: Callable[[_Read, str, str], _Made]
    ) -> Response:
        hub, headers = self._hub, request.scope["headers"]
        caller = hub.keys.caller(headers)
        hub.limits.admit(caller.tenant)
        limit = None if caller.role == "rank" else LARGEST_BROWSER_BODY
        documents, in_list = read_documents(await hub.body(headers, request.receive, limit), kind)
        if len(documents) > 1:
            hub.limits.admit(caller.tenant, len(documents) - 1)
        made = [
            made_of(document, caller.role, f"[{place}]." if in_list else "") for place, document in enumerate(documents)
        ]
        reports = [each.call for each in made if isinstance(each, Reported)]
        results = iter(await calls.feedback(hub, caller.tenant, reports) if reports else ())
        return _json(told([_outcome(each, next(results)) if isinstance(each, Reported) else each for each in made]))

    def _made_of_event(self, event: UbiEvent, role: str, where: str) -> _Made:
        if event.action_name not in self._clicks:
            return event.action_name
        attributes, field = event.event_attributes, f"{where}event_attributes.object.object_id"
        if attributes is None or attributes.object is None:
            return Problem(422, "Invalid request", f"{field} is missing: it says what was clicked", field)
        clicked = str(attributes.object.object_id)
        return self._made(event, role, where, {"clicks": field, "clicks[0]": field}, clicks=[clicked])

    def _made_of_query(self, query: UbiQuery, role: str, where: str) -> _Made:
        """The page was shown; if the query says what was, that must be the page."""
        return self._made(query, role, where, {"shown": where + query.hits_name}, clicks=[], shown=query.hits or None)

    def _made(self, document: Document, role: str, where: str, names: dict[str, str], **parts: Any) -> _Made:
        field = f"{where}{'.'.join(self._page_id)}"
        name = _found(document.model_dump(), self._page_id)
        if not isinstance(name, str) or not name:
            return Problem(422, "Invalid request", f"{field} is missing: it says which page this is about", field)
        is_token = "." in name  # an impression id has no point
        if role == "feedback" and not is_token:
            return Problem(403, "Rank key needed", f"{field}: a feedback key needs the token of the page", field)
        named = {"token": name} if is_token else {"impression_id": name}
        names |= {"token": field, "impression_id": field}
        try:
            return Reported(calls.made(FeedbackCall, names, **named, **parts), names)
        except Problem as problem:
            return problem


def _outcome(reported: Reported, result: FeedbackAnswer | Problem) -> FeedbackAnswer | Problem:
    return calls.renamed(result, reported.names) if isinstance(result, Problem) else result


def rank_call(query: UbiQuery) -> tuple[RankCall, calls.Names]:
    """The rank call of a query, and what its fields are called there; Problem 422 with the field if it cannot be."""
    hits, field = query.hits, query.hits_name
    if not hits:
        raise Problem(422, "Invalid request", f"{field} must have the hits of the search, best first", field)
    attributes = query.query_attributes or QueryAttributes()
    names = {
        "context": "user_query", "base_ranking": field, "candidates": "query_attributes.candidates",
        "k": "query_attributes.k", "session_id": "client_id", "request_id": "query_id",
    }  # fmt: skip
    call = calls.made(
        RankCall, names, context=query.user_query, base_ranking=hits, candidates=attributes.candidates,
        k=attributes.k or min(USUAL_POSITIONS, len(hits)), session_id=query.client_id, request_id=query.query_id,
    )  # fmt: skip
    return call, names


def read_documents(body: bytes, kind: type[_Read]) -> tuple[list[_Read], bool]:
    """The documents of a body, which is an object or a list of them; True for a list. Problem for anything else."""
    content = strict_json.loads(body)
    if not isinstance(content, list):
        if not isinstance(content, dict):
            raise Problem(422, "Invalid request", "the body must be a JSON object or a list of objects")
        return [understood(kind, content)], False
    if len(content) > LARGEST_BATCH:
        raise Problem(422, "Invalid request", f"the list must have at most {LARGEST_BATCH} entries; send fewer")
    return [_entry(kind, place, entry) for place, entry in enumerate(content)], True


def _entry(kind: type[_Read], place: int, entry: Any) -> _Read:
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        problem = problem_of(error)
        field = f"[{place}].{problem.field}" if problem.field else f"[{place}]"
        raise Problem(422, problem.title, f"[{place}]: {problem.detail}", field) from error


def told(results: Sequence[FeedbackAnswer | Problem | str]) -> dict[str, Any]:
    """What became of the documents of a body, in numbers; refusals one by one."""
    answers = [result for result in results if isinstance(result, FeedbackAnswer)]
    refusals = [
        {"document": place, **result.as_dict()} for place, result in enumerate(results) if isinstance(result, Problem)
    ]
    return {
        "accepted": sum(answer.accepted and not answer.duplicate for answer in answers),
        "duplicate": sum(answer.duplicate for answer in answers),
        "late": sum(answer.late for answer in answers),
        "ignored": dict(Counter(result for result in results if isinstance(result, str))),
        "refused": refusals,
    }


def _found(content: Any, path: Sequence[str]) -> Any:
    for part in path:
        content = content.get(part) if isinstance(content, dict) else None
    return content


def _json(content: object) -> Response:
    return Response(json.dumps(content), media_type="application/json")
