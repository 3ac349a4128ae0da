"""The two calls that matter for speed. They do without FastAPI and answer with the JSON of pydantic models."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response

from saferank.service.http.hub import Hub, Receive, parsed, understood
from saferank.service.http.openapi import refusals, request_body
from saferank.service.keys import Headers, Principal
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

HotCall = Callable[[Headers, Receive], Awaitable[bytes]]
"""From headers and body to the JSON of a successful answer; anything else is a Problem that is raised."""


class _OwnCall(ABC):
    """What both have in common: who calls is asked first, then the body is looked at."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, headers: Headers, receive: Receive) -> bytes:
        """The answer."""
        caller = self._caller(headers)
        self._hub.limits.admit(caller.tenant)
        largest = None if caller.role == "rank" else LARGEST_BROWSER_BODY
        return await self._answer(caller, await self._hub.body(headers, receive, largest))

    @abstractmethod
    def _caller(self, headers: Headers) -> Principal:
        """Who may make this call."""

    @abstractmethod
    async def _answer(self, caller: Principal, body: bytes) -> bytes:
        """Understand a body and answer it."""


class HotRank(_OwnCall):
    """Which page to show."""

    def _caller(self, headers: Headers) -> Principal:
        return self._hub.keys.ranking(headers)

    async def _answer(self, caller: Principal, body: bytes) -> bytes:
        call = understood(RankCall, parsed(body))
        self._hub.check_items(call)
        answer = await self._hub.engine.rank(caller.tenant, call)
        return RankAnswer.__pydantic_serializer__.to_json(answer, exclude=None if call.explain else {"explanation"})


class HotFeedback(_OwnCall):
    """What was clicked on pages."""

    def _caller(self, headers: Headers) -> Principal:
        return self._hub.keys.caller(headers)

    async def _answer(self, caller: Principal, body: bytes) -> bytes:
        content = parsed(body)
        if "batch" not in content:
            return await self._single(caller, understood(FeedbackCall, content))
        calls = understood(FeedbackBatch, content).batch
        if len(calls) > 1:
            self._hub.limits.admit(caller.tenant, len(calls) - 1)
        return await self._batch(caller, calls)

    async def _single(self, caller: Principal, call: FeedbackCall) -> bytes:
        if caller.role == "feedback" and call.token is None:
            raise _token_needed("impression_id")
        result = (await self._hub.engine.feedback(caller.tenant, [call]))[0]
        if isinstance(result, Problem):
            raise result
        return FeedbackAnswer.__pydantic_serializer__.to_json(result)

    async def _batch(self, caller: Principal, calls: list[FeedbackCall]) -> bytes:
        if caller.role == "feedback":
            for place, call in enumerate(calls):
                if call.token is None:
                    raise _token_needed(f"batch[{place}].impression_id")
        results = await self._hub.engine.feedback(caller.tenant, calls)
        entries = [ProblemBody(**result.as_dict()) if isinstance(result, Problem) else result for result in results]
        return FeedbackResults(results=entries).model_dump_json(exclude_none=True).encode()


def hot_calls(hub: Hub) -> dict[str, HotCall]:
    """How the hot calls are answered, by path; all are for POST."""
    return {"/v1/rank": HotRank(hub), "/v1/feedback": HotFeedback(hub)}


def add_hot_routes(app: FastAPI, calls: dict[str, HotCall]) -> None:
    """The same calls as ordinary routes, with their place in the OpenAPI document."""
    rank, feedback = _as_route(calls["/v1/rank"]), _as_route(calls["/v1/feedback"])
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


def _as_route(call: HotCall) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        body = await call(request.scope["headers"], request.receive)
        return Response(body, media_type="application/json")

    return route


def _token_needed(field: str) -> Problem:
    return Problem(403, "Rank key needed", f"{field}: a feedback key needs the token of the page", field)
