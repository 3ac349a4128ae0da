"""The two calls that every page view makes, written for speed: bytes in, bytes out.

``Gate`` calls these two directly; the web framework around the other endpoints would cost several times as much as
they do. It knows the same functions as ordinary routes, for the OpenAPI document.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from saferank.service.http.bodies import Receive, parsed, understood
from saferank.service.http.hub import Hub
from saferank.service.http.openapi import refusals, request_body
from saferank.service.wire.calls import (
    FeedbackAnswer,
    FeedbackBatch,
    FeedbackCall,
    FeedbackResults,
    RankAnswer,
    RankCall,
)
from saferank.service.wire.problems import Problem, ProblemBody

LARGEST_BROWSER_BODY = 256_000
"""Feedback keys are in web pages: whoever has one may not send megabytes to be parsed."""

Hot = Callable[[dict[str, Any], Receive], Awaitable[bytes]]
"""A handler: the request's scope and its body, to the JSON of a successful answer; anything else is a Problem."""


def hot_handlers(hub: Hub) -> dict[str, Hot]:
    """The handlers by path; all are for POST."""

    async def rank(scope: dict[str, Any], receive: Receive) -> bytes:
        headers = scope["headers"]
        tenant = hub.keys.ranking_tenant(headers)
        hub.limits.admit(tenant)
        call = await hub.call(RankCall, headers, receive)
        _check_length(call, hub.settings.max_items)
        answer = await hub.engine.rank(tenant, call)
        return RankAnswer.__pydantic_serializer__.to_json(answer, exclude={"explanation"} if not call.explain else None)

    async def feedback(scope: dict[str, Any], receive: Receive) -> bytes:
        headers = scope["headers"]
        caller = hub.keys.caller(headers)
        hub.limits.admit(caller.tenant)  # before anything is read: parsing costs more than refusing
        content = parsed(await hub.body(headers, receive, None if caller.role == "rank" else LARGEST_BROWSER_BODY))
        if "batch" in content:
            calls = understood(FeedbackBatch, content).batch
        else:
            calls = [understood(FeedbackCall, content)]
        if len(calls) > 1:
            hub.limits.admit(caller.tenant, len(calls) - 1)
        if caller.role == "feedback":
            _check_tokens(calls, "batch" in content)
        results = await hub.engine.feedback(caller.tenant, calls)
        return _batch_json(results) if "batch" in content else _single_json(results[0])

    return {"/v1/rank": rank, "/v1/feedback": feedback}


def add_hot_routes(app: FastAPI, handlers: dict[str, Hot]) -> None:
    """The same handlers as ordinary routes, with their place in the OpenAPI document."""
    rank, feedback = _as_route(handlers["/v1/rank"]), _as_route(handlers["/v1/feedback"])
    app.post(
        "/v1/rank",
        response_model=RankAnswer,
        summary="The page to show",
        responses=refusals(400, 401, 403, 408, 413, 415, 422, 429, 503),
        openapi_extra=request_body("RankCall"),
        operation_id="rank",
    )(rank)
    app.post(
        "/v1/feedback",
        response_model=FeedbackAnswer | FeedbackResults,
        summary="What was clicked on a page, or a batch of such reports",
        responses=refusals(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
        openapi_extra=request_body("FeedbackCall", "FeedbackBatch"),
        operation_id="feedback",
    )(feedback)


def _as_route(handler: Hot) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        body = await handler(dict(request.scope), request.receive)
        return Response(body, media_type="application/json")

    return route


def _check_length(call: RankCall, longest: int) -> None:
    for name, items in (("base_ranking", call.base_ranking), ("candidates", call.candidates)):
        if len(items) > longest:
            raise Problem(422, "Invalid request", f"{name} must have at most {longest} entries", name)


def _check_tokens(calls: list[FeedbackCall], in_batch: bool) -> None:
    for place, call in enumerate(calls):
        if call.token is None:
            field = f"batch[{place}].impression_id" if in_batch else "impression_id"
            raise Problem(403, "Rank key needed", f"{field}: a feedback key needs the token of the page", field)


def _single_json(result: FeedbackAnswer | Problem) -> bytes:
    if isinstance(result, Problem):
        raise result
    return FeedbackAnswer.__pydantic_serializer__.to_json(result)


def _batch_json(results: list[FeedbackAnswer | Problem]) -> bytes:
    entries = [ProblemBody(**result.as_dict()) if isinstance(result, Problem) else result for result in results]
    return FeedbackResults(results=entries).model_dump_json(exclude_none=True).encode()
