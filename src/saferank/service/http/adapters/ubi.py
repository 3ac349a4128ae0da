"""OpenSearch User Behavior Insights (UBI 1.2 and 1.3) over the two calls: events, queries, and a rank call.

``docs/engineers/ubi.md`` says what each field means here. Fields that are not named below are accepted and ignored.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta, Struct

from saferank.service.http.endpoints import Endpoints, Request, check_items, check_token, largest_body
from saferank.service.wire.calls import (
    INVALID,
    LARGEST_BATCH,
    MOST_POSITIONS,
    FeedbackAnswer,
    FeedbackCall,
    MisuseError,
    RankCall,
    converted,
    values,
)
from saferank.service.wire.problems import Problem

if TYPE_CHECKING:
    from saferank.service.http.app import App

USUAL_POSITIONS = 10
endpoints = Endpoints()

ObjectId = str | int
Names = Mapping[str, str]
"""By field of a call: what the caller calls it, as a path of the body."""


class Object(Struct, frozen=True):
    """What was clicked."""

    object_id: ObjectId


class UbiIndex(Struct, frozen=True):
    """A place on a page."""

    index: int


class UbiPosition(Struct, frozen=True):
    """Where it stood. It is not used: the service knows where an item was."""

    ordinal: int | UbiIndex = 0


class Attributes(Struct, frozen=True):
    """The extensible part of an event."""

    object: Object | None = None
    position: UbiPosition | None = None


class UbiEvent(Struct, frozen=True):
    """Something that a user did."""

    action_name: Annotated[str, Meta(max_length=100)]
    timestamp: str | int
    query_id: str | None = None
    event_attributes: Attributes | None = None

    def __post_init__(self) -> None:
        """What the types cannot say."""
        _check_moment(self.timestamp)


class QueryAttributes(Struct, frozen=True):
    """The extensible part of a query; a rank call has its page size, its candidates and its pins here."""

    k: Annotated[int, Meta(ge=1, le=MOST_POSITIONS)] | None = None
    candidates: list[str] = []
    pinned: list[str] = []


class UbiQuery(Struct, frozen=True):
    """A query and what was found."""

    user_query: str
    timestamp: str | int | None = None
    query_id: str | None = None
    client_id: str | None = None
    query_response_id: str | None = None
    query_response_hit_ids: list[ObjectId] | None = None
    query_response_object_ids: list[ObjectId] | None = None
    query_attributes: QueryAttributes | None = None

    def __post_init__(self) -> None:
        """What the types cannot say."""
        _check_moment(self.timestamp)

    @property
    def hits(self) -> list[str]:
        """What was found, best first, by the name of either version."""
        return [str(hit) for hit in self.query_response_hit_ids or self.query_response_object_ids or ()]

    @property
    def hits_name(self) -> str:
        """The name that the hits have."""
        is_older = not self.query_response_hit_ids and self.query_response_object_ids
        return "query_response_object_ids" if is_older else "query_response_hit_ids"


class UbiOutcome(Struct, frozen=True):
    """What became of the documents of a body, in numbers; refusals one by one."""

    accepted: int
    duplicate: int
    late: int
    ignored: dict[str, int]
    refused: list[dict[str, Any]]


def _check_moment(value: str | int | None) -> None:
    if isinstance(value, str) and not value.isdigit():
        try:
            datetime.fromisoformat(value.upper())
        except ValueError:
            what = f"{value[:50]!r} is neither ISO 8601 nor milliseconds since 1970"
            raise MisuseError("timestamp", what) from None


class Reported(NamedTuple):
    """A report, and the names of its fields in the document."""

    call: FeedbackCall
    names: Names


_Document = TypeVar("_Document", UbiEvent, UbiQuery)
_Called = TypeVar("_Called", RankCall, FeedbackCall)
_Made = Reported | str | Problem
"""What a document is: a report, an action that is ignored, or refused."""


@endpoints.post("/ubi_events", "UBI events: clicks are reported for their pages", UbiOutcome, "feedback", UbiEvent)
async def ubi_events(app: "App", request: Request) -> UbiOutcome:
    """One event or a list. Other actions than clicks are counted by name and ignored."""

    def made(event: UbiEvent, about: "_About") -> _Made:
        if event.action_name not in app.settings.ubi_click_actions:
            return event.action_name
        attributes, field = event.event_attributes, f"{about.where}event_attributes.object.object_id"
        if attributes is None or attributes.object is None:
            return Problem(422, INVALID, f"{field} is missing: it says what was clicked", field)
        clicked = str(attributes.object.object_id)
        return about.made({"clicks": field, "clicks[0]": field}, clicks=[clicked])

    return await _report(app, request, UbiEvent, made)


@endpoints.post("/ubi_queries", "UBI queries: their pages were shown", UbiOutcome, "feedback", UbiQuery)
async def ubi_queries(app: "App", request: Request) -> UbiOutcome:
    """One query or a list. Each is a report without clicks; if it says what was shown, that must be the page."""

    def made(query: UbiQuery, about: "_About") -> _Made:
        return about.made({"shown": about.where + query.hits_name}, clicks=[], shown=query.hits or None)

    return await _report(app, request, UbiQuery, made)


@endpoints.post("/ubi_rank", "The page for a UBI query", dict, "rank", UbiQuery)
async def ubi_rank(app: "App", request: Request) -> dict[str, Any]:
    """The hits are production's ranking."""
    query = converted(values(await request.body()), UbiQuery)
    call, names = rank_call(query)
    try:
        check_items(app, call)
    except Problem as problem:
        raise renamed(problem, names) from problem
    page = await app.server.rank(request.tenant, call)
    return {
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


class _About(NamedTuple):
    """What is known of a document besides its fields."""

    content: Any
    where: str  # its place in the body
    page_id: str  # where the id of its page is
    role: str  # of the caller

    def made(self, names: dict[str, str], **parts: Any) -> _Made:
        """A report of the page that the document names."""
        field, name = f"{self.where}{self.page_id}", self.content
        for part in self.page_id.split("."):
            name = name.get(part) if isinstance(name, dict) else None
        if not isinstance(name, str) or not name:
            return Problem(422, INVALID, f"{field} is missing: it says which page this is about", field)
        is_token = "." in name  # an impression id has no point
        named = {"token": name} if is_token else {"impression_id": name}
        names |= {"token": field, "impression_id": field}
        try:
            check_token(self.role, is_token, field)
            return Reported(_called(FeedbackCall, names, {**named, **parts}), names)
        except Problem as problem:
            return problem


async def _report(
    app: "App", request: Request, kind: type[_Document], made_of: Callable[[_Document, _About], _Made]
) -> UbiOutcome:
    contents, documents, in_list = read_documents(await request.body(largest_body(request)), kind)
    if len(documents) > 1:
        app.limits.admit(request.tenant, len(documents) - 1)
    page_id, role = app.settings.ubi_page_id, request.caller.role
    made = [
        made_of(document, _About(content, f"[{place}]." if in_list else "", page_id, role))
        for place, (content, document) in enumerate(zip(contents, documents, strict=True))
    ]
    reports = [each.call for each in made if isinstance(each, Reported)]
    results = iter(await app.server.feedback(request.tenant, reports) if reports else ())
    return told([_outcome(each, next(results)) if isinstance(each, Reported) else each for each in made])


def _outcome(reported: Reported, result: FeedbackAnswer | Problem) -> FeedbackAnswer | Problem:
    return renamed(result, reported.names) if isinstance(result, Problem) else result


def rank_call(query: UbiQuery) -> tuple[RankCall, Names]:
    """The rank call of a query, and what its fields are called there; Problem 422 with the field if it cannot be."""
    hits, field = query.hits, query.hits_name
    if not hits:
        raise Problem(422, INVALID, f"{field} must have the hits of the search, best first", field)
    attributes = query.query_attributes or QueryAttributes()
    names = {
        "context": "user_query", "base_ranking": field, "candidates": "query_attributes.candidates",
        "pinned": "query_attributes.pinned", "k": "query_attributes.k", "session_id": "client_id",
        "request_id": "query_id",
    }  # fmt: skip
    parts = {
        "context": query.user_query, "base_ranking": hits, "candidates": attributes.candidates,
        "pinned": attributes.pinned, "k": attributes.k or min(USUAL_POSITIONS, len(hits)),
        "session_id": query.client_id, "request_id": query.query_id,
    }  # fmt: skip
    return _called(RankCall, names, parts), names


def read_documents(body: bytes, kind: type[_Document]) -> tuple[list[Any], list[_Document], bool]:
    """The documents of a body, as they are and understood; True for a list, False for one object."""
    content = values(body)
    if not isinstance(content, list):
        return [content], [converted(content, kind)], False
    if len(content) > LARGEST_BATCH:
        raise Problem(422, INVALID, f"the list must have at most {LARGEST_BATCH} entries; send fewer")
    return content, converted(content, list[kind]), True  # type: ignore[valid-type]


def told(results: Sequence[FeedbackAnswer | Problem | str]) -> UbiOutcome:
    """What became of documents."""
    answers = [result for result in results if isinstance(result, FeedbackAnswer)]
    refusals = [
        {"document": place, **result.as_dict()} for place, result in enumerate(results) if isinstance(result, Problem)
    ]
    return UbiOutcome(
        accepted=sum(answer.accepted and not answer.duplicate for answer in answers),
        duplicate=sum(answer.duplicate for answer in answers),
        late=sum(answer.late for answer in answers),
        ignored=dict(Counter(result for result in results if isinstance(result, str))),
        refused=refusals,
    )


def _called(kind: type[_Called], names: Names, parts: dict[str, Any]) -> _Called:
    """A call from checked parts; Problem 422 with the caller's name of the field if it cannot be one."""
    try:
        return converted(parts, kind)
    except Problem as problem:
        raise renamed(problem, names) from problem


def renamed(problem: Problem, names: Names) -> Problem:
    """A refusal, with the caller's name of the field."""
    field = theirs(problem.field or "", names)
    detail = problem.detail
    if problem.field and detail.startswith(problem.field):
        detail = field + detail.removeprefix(problem.field)
    return Problem(problem.status, problem.title, detail, field or None, retry_after=problem.retry_after)


def theirs(field: str, names: Names) -> str:
    """The caller's name of a field of a call, which may be an entry of a list.

    >>> theirs("base_ranking[2]", {"base_ranking": "hits", "k": "size"})
    'hits[2]'
    """
    if field in names:
        return names[field]
    name, bracket, place = field.partition("[")
    return names.get(name, name) + bracket + place
