"""Personalizer's paths under the prefixes of its three SDK generations, and its form of refusals."""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from fastapi import Request, Response
from pydantic import BaseModel
from starlette.routing import Route

from saferank.service.clock import milliseconds
from saferank.service.http.adapters import calls
from saferank.service.http.adapters.personalizer import translation
from saferank.service.http.adapters.personalizer.book import Event, EventBook
from saferank.service.http.adapters.personalizer.models import (
    MultiSlotRank,
    MultiSlotReward,
    Rank,
    Reward,
    SingleRank,
)
from saferank.service.http.dependencies import checked
from saferank.service.http.gate import problem_headers
from saferank.service.http.hub import Hub
from saferank.service.wire.calls import FeedbackCall, RankAnswer
from saferank.service.wire.problems import Problem

PREFIXES = ("/personalizer/v1.0", "/personalizer/v1.1-preview.3", "/personalizer")
KEY_HEADER = b"ocp-apim-subscription-key"
_CODES = {401: "InvalidApiAccess", 403: "InvalidApiAccess", 404: "ResourceNotFound", 413: "PayloadSizeExceeded"}
_LEARNING_MODES = {"live": "Online", "shadow": "Apprentice", "off": "LoggingOnly"}
_Body = TypeVar("_Body", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


def personalizer_routes(hub: Hub) -> list[Route]:
    """All routes of the adapter."""
    personalizer = Personalizer(hub)
    posts: list[tuple[str, Handler, str]] = [
        ("/rank", personalizer.rank, "InvalidRankRequest"),
        ("/multislot/rank", personalizer.rank_slots, "InvalidRankRequest"),
        ("/events/{event_id}/reward", personalizer.reward, "InvalidRewardRequest"),
        ("/multislot/events/{event_id}/reward", personalizer.reward_slots, "InvalidRewardRequest"),
        ("/events/{event_id}/activate", personalizer.activate, "InvalidEventIdToActivate"),
        ("/multislot/events/{event_id}/activate", personalizer.activate, "InvalidEventIdToActivate"),
    ]
    routes = [
        Route(prefix + path, _refusing(handler, code), methods=["POST"])
        for prefix in PREFIXES
        for path, handler, code in posts
    ]
    for prefix in PREFIXES:
        reading = _refusing(personalizer.configuration, "InvalidRequest")
        routes.append(Route(f"{prefix}/configurations/service", reading, methods=["GET"]))
    methods = ["GET", "POST", "PUT", "DELETE"]
    return [*routes, Route("/personalizer/{rest:path}", _refusing(_nothing_there, "InvalidRequest"), methods=methods)]


class Personalizer:
    """Answers Personalizer's calls from the two calls of the service."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._opened: EventBook | None = None

    @property
    def _book(self) -> EventBook:
        if self._opened is None:
            self._opened = EventBook(_folder_of(self._hub.settings.store))
        return self._opened

    async def rank(self, request: Request) -> Response:
        """Which action to use."""
        tenant, body = await self._read(request, SingleRank)
        question = translation.single_question(body, self._hub.settings.personalizer_context)

        def answer(event_id: str, page: RankAnswer) -> dict[str, object]:
            return translation.single_answer(body, event_id, page)

        return await self._answer(tenant, body, question, answer)

    async def rank_slots(self, request: Request) -> Response:
        """Which action to use in every slot."""
        tenant, body = await self._read(request, MultiSlotRank)
        question = translation.multi_slot_question(body, self._hub.settings.personalizer_context)

        def answer(event_id: str, page: RankAnswer) -> dict[str, object]:
            return translation.multi_slot_answer(event_id, question.slots, page)

        return await self._answer(tenant, body, question, answer)

    async def reward(self, request: Request) -> Response:
        """A positive reward is a click on the chosen action."""
        tenant, body = await self._read(request, Reward)
        event = self._event(request, tenant, slots=False)
        return await self._reward(event, [event.actions[translation.ONE]] if body.value > 0 else [])

    async def reward_slots(self, request: Request) -> Response:
        """A positive reward is a click on the action of its slot."""
        tenant, body = await self._read(request, MultiSlotReward)
        event = self._event(request, tenant, slots=True)
        for place, entry in enumerate(body.reward):
            if entry.slot not in event.actions:
                field = f"reward[{place}].slotId"
                raise Problem(422, "Unknown slot", f"{field} {entry.slot!r} is not a slot of this event", field)
        clicked = (event.actions[entry.slot] for entry in body.reward if entry.value > 0)
        return await self._reward(event, list(dict.fromkeys(clicked)))

    async def activate(self, request: Request) -> Response:
        """The event was shown: what was rewarded so far counts, and what comes."""
        tenant = self._tenant(request)
        event = self._event(request, tenant, slots="/multislot/" in request.url.path)
        while not event.active:
            await self._deliver(event, list(event.clicks))
            if self._book.activate(event):
                break
            event = self._event(request, tenant, slots="/multislot/" in request.url.path)
        return Response(status_code=204)

    async def configuration(self, request: Request) -> Response:
        """What of Personalizer's settings has a meaning here."""
        self._tenant(request)
        settings = self._hub.settings
        window = f"PT{settings.window_seconds:g}S"
        facts = {
            "rewardWaitTime": window,
            "defaultReward": 0.0,
            "rewardAggregation": "sum",
            "explorationPercentage": 1.0 - settings.holdout_share if settings.mode == "live" else 0.0,
            "modelExportFrequency": window,
            "logMirrorEnabled": False,
            "logRetentionDays": -1,
            "modelRetrainDays": 0,
            "learningMode": _LEARNING_MODES[settings.mode],
            "isAutoOptimizationEnabled": False,
        }
        return _json(200, facts)

    # --- what they share ---

    def _tenant(self, request: Request) -> str:
        headers = request.scope["headers"]
        given = next((value for name, value in headers if name == KEY_HEADER), None)
        tenant = self._hub.keys.ranking_tenant(headers if given is None else [(b"x-api-key", given)])
        self._hub.limits.admit(tenant)
        return tenant

    async def _read(self, request: Request, kind: type[_Body]) -> tuple[str, _Body]:
        tenant = self._tenant(request)
        return tenant, await self._hub.call(kind, request.scope["headers"], request.receive)

    async def _answer(
        self,
        tenant: str,
        body: Rank,
        question: translation.Question,
        form: Callable[[str, RankAnswer], dict[str, object]],
    ) -> Response:
        digest = _digest(question)
        known = None if body.event_id is None else self._book.find(tenant, body.event_id)
        if known is not None:
            return _repeated(known, digest)
        page = await calls.rank(self._hub, tenant, question.call)
        event_id = body.event_id or page.impression_id
        answer = json.dumps(form(event_id, page))
        actions = dict(zip(question.slots, page.ranking, strict=False))
        event = Event(tenant, event_id, page.token, actions, digest, answer, active=not body.deferred)
        self._book.add(event, milliseconds(page.closes_at), int(1000 * time.time()))
        return Response(answer, 201, media_type="application/json")

    def _event(self, request: Request, tenant: str, slots: bool) -> Event:
        try:
            event_id = checked(unquote(request.path_params["event_id"], errors="strict"), "eventId")
        except UnicodeDecodeError as problem:
            raise Problem(422, "Invalid request", "eventId in the path is not UTF-8", "eventId") from problem
        event = self._book.find(tenant, event_id)
        if event is None or (translation.ONE in event.actions) == slots:
            what = "event with slots" if slots else "event without slots"
            raise Problem(404, "Unknown event", f"there is no {what} {event_id!r}, or no longer", "eventId")
        return event

    async def _reward(self, event: Event, clicks: list[str]) -> Response:
        if event.active:
            await self._deliver(event, clicks)
        else:
            self._book.hold(event, tuple(clicks))
        return Response(status_code=204)

    async def _deliver(self, event: Event, clicks: list[str]) -> None:
        call = FeedbackCall(token=event.token, clicks=clicks)
        (result,) = await calls.feedback(self._hub, event.tenant, [call])
        if isinstance(result, Problem):
            raise result


def _repeated(event: Event, digest: bytes) -> Response:
    if event.digest != digest:
        detail = f"eventId {event.id!r} came before with other actions; give a new event a new id"
        raise Problem(422, "Other event", detail, "eventId")
    return Response(event.answer, 201, media_type="application/json")


def _digest(question: translation.Question) -> bytes:
    call = question.call
    parts: list[Sequence[str]] = [[call.context], call.base_ranking, call.candidates, question.slots]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()


async def _nothing_there(request: Request) -> Response:
    detail = f"{request.scope['path'][:200]} is not offered; docs/personalizer.md lists what is"
    raise Problem(404, "Not found", detail)


def _refusing(handler: Handler, code: str) -> Handler:
    """The handler, with refusals in the form that the SDKs understand."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Problem as problem:
            return error_response(problem, code)

    return answer


def error_response(problem: Problem, code: str) -> Response:
    """A refusal as Personalizer would word it; ``code`` is for what is wrong with the request itself."""
    status = 400 if problem.status in (409, 422) else problem.status
    error = {"code": _CODES.get(status, code if status == 400 else "OperationNotAllowed"), "message": problem.detail}
    response = _json(status, {"error": error if problem.field is None else {**error, "target": problem.field}})
    response.raw_headers += problem_headers(problem)
    return response


def _json(status: int, content: object) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")


def _folder_of(store: str) -> Path:
    """The folder that event ids are kept in; Problem 501 for a store without one."""
    if "://" in store:
        detail = "Personalizer's event ids are kept in the folder of a store; serve this API with --store FOLDER"
        raise Problem(501, "Not on PostgreSQL", detail)
    return Path(store)
