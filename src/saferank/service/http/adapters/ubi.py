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
    def hits(self) -> tuple[str, list[str]]:
        """What was found, best first, and its field, which has another name in either version."""
        name, hits = "query_response_hit_ids", self.query_response_hit_ids
        if not hits and self.query_response_object_ids:
            name, hits = "query_response_object_ids", self.query_response_object_ids
        return name, [str(hit) for hit in hits or ()]


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
_Said = tuple[dict[str, Any], Names] | str
"""What a document says of its page, and where in the body it does; or an action that is ignored."""


@endpoints.post("/ubi_events", "UBI events: clicks are reported for their pages", UbiOutcome, "feedback", UbiEvent)
async def ubi_events(app: "App", request: Request) -> UbiOutcome:
    """One event or a list. Other actions than clicks are counted by name and ignored."""

    def said(event: UbiEvent, where: str) -> _Said:
        if event.action_name not in app.settings.ubi_click_actions:
            return event.action_name
        attributes, field = event.event_attributes, f"{where}event_attributes.object.object_id"
        if attributes is None or attributes.object is None:
            raise Problem(422, INVALID, f"{field} is missing: it says what was clicked", field)
        return {"clicks": [str(attributes.object.object_id)]}, {"clicks": field, "clicks[0]": field}

    return await _report(app, request, UbiEvent, said)


@endpoints.post("/ubi_queries", "UBI queries: their pages were shown", UbiOutcome, "feedback", UbiQuery)
async def ubi_queries(app: "App", request: Request) -> UbiOutcome:
    """One query or a list. Each is a report without clicks; if it says what was shown, that must be the page."""

    def said(query: UbiQuery, where: str) -> _Said:
        field, hits = query.hits
        return {"clicks": [], "shown": hits or None}, {"shown": where + field}

    return await _report(app, request, UbiQuery, said)


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


async def _report(
    app: "App", request: Request, kind: type[_Document], said: Callable[[_Document, str], _Said]
) -> UbiOutcome:
    """Report what the documents of a body say: an object, or a list of them."""
    content = values(await request.body(largest_body(request)))
    in_list = isinstance(content, list)
    if in_list and len(content) > LARGEST_BATCH:
        raise Problem(422, INVALID, f"the list must have at most {LARGEST_BATCH} entries; send fewer")
    documents = converted(content, list[kind]) if in_list else [converted(content, kind)]  # type: ignore[valid-type]
    if len(documents) > 1:
        app.limits.admit(request.tenant, len(documents) - 1)
    found: list[Reported | str | Problem] = []
    for place, (body, document) in enumerate(zip(content if in_list else [content], documents, strict=True)):
        where = f"[{place}]." if in_list else ""
        try:
            parts = said(document, where)
            found.append(parts if isinstance(parts, str) else _reported(app, request, body, where, *parts))
        except Problem as problem:
            found.append(problem)
    reports = [one.call for one in found if isinstance(one, Reported)]
    results = iter(await app.server.feedback(request.tenant, reports) if reports else ())
    return told([_outcome(next(results), one.names) if isinstance(one, Reported) else one for one in found])


def _reported(app: "App", request: Request, body: Any, where: str, parts: dict[str, Any], names: Names) -> Reported:
    """The report of a document on the page that it names."""
    page_id = app.settings.ubi_page_id
    field, name = where + page_id, body
    for part in page_id.split("."):
        name = name.get(part) if isinstance(name, dict) else None
    if not isinstance(name, str) or not name:
        raise Problem(422, INVALID, f"{field} is missing: it says which page this is about", field)
    is_token = "." in name  # an impression id has no point
    check_token(request.caller.role, is_token, field)
    names = {**names, "token": field, "impression_id": field}
    return Reported(_called(FeedbackCall, names, {"token" if is_token else "impression_id": name, **parts}), names)


def _outcome(result: FeedbackAnswer | Problem, names: Names) -> FeedbackAnswer | Problem:
    return renamed(result, names) if isinstance(result, Problem) else result


def rank_call(query: UbiQuery) -> tuple[RankCall, Names]:
    """The rank call of a query, and what its fields are called there; Problem 422 with the field if it cannot be."""
    field, hits = query.hits
    if not hits:
        raise Problem(422, INVALID, f"{field} must have the hits of the search, best first", field)
    more = query.query_attributes or QueryAttributes()
    said = {
        "context": ("user_query", query.user_query), "base_ranking": (field, hits),
        "candidates": ("query_attributes.candidates", more.candidates),
        "pinned": ("query_attributes.pinned", more.pinned),
        "k": ("query_attributes.k", more.k or min(USUAL_POSITIONS, len(hits))),
        "session_id": ("client_id", query.client_id), "request_id": ("query_id", query.query_id),
    }  # fmt: skip
    names = {name: theirs for name, (theirs, _) in said.items()}
    return _called(RankCall, names, {name: value for name, (_, value) in said.items()}), names


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
    field, detail = theirs(problem.field or "", names), problem.detail
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
