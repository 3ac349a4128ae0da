"""Azure Personalizer's API over the two calls: its paths under the prefixes of its three SDK generations.

A reward carries nothing but an event id. The store binds the id to its page (``commands/events.py``), so any server
can answer it and nothing is remembered here.
"""

import functools
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import unquote

from fastapi import Request, Response
from pydantic import BaseModel
from starlette.routing import Route

from saferank.service.commands.events import EventPage
from saferank.service.http.adapters import calls
from saferank.service.http.adapters.personalizer_calls import (
    MultiSlotRank,
    MultiSlotReward,
    Rank,
    RewardBody,
    SingleRank,
    actions_of,
    multi_slot_answer,
    multi_slot_call,
    single_answer,
    single_call,
)
from saferank.service.http.dependencies import checked
from saferank.service.http.gate import problem_headers
from saferank.service.http.hub import Hub
from saferank.service.knowledge.catalogues import digest_of
from saferank.service.wire.calls import FeedbackCall, RankCall
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

    async def rank(self, request: Request) -> Response:
        """Which action to use."""
        tenant, body = await self._read(request, SingleRank)
        call = single_call(body, self._hub.settings.personalizer_context)
        event_id, page = await self._page(tenant, body, call)
        return _json(201, single_answer(body, event_id, page))

    async def rank_slots(self, request: Request) -> Response:
        """Which action to use in every slot."""
        tenant, body = await self._read(request, MultiSlotRank)
        call = multi_slot_call(body, self._hub.settings.personalizer_context)
        return _json(201, multi_slot_answer(*await self._page(tenant, body, call)))

    async def reward(self, request: Request) -> Response:
        """A positive reward is a click on the chosen action."""
        tenant, body = await self._read(request, RewardBody)
        page = await self._event(request, tenant, slots=False)
        return await self._report(tenant, page, [page.ranking[0]] if body.value > 0 else [])

    async def reward_slots(self, request: Request) -> Response:
        """A positive reward is a click on the action of its slot."""
        tenant, body = await self._read(request, MultiSlotReward)
        page = await self._event(request, tenant, slots=True)
        actions = actions_of(page) or {}
        for place, entry in enumerate(body.reward):
            if entry.slot not in actions:
                field = f"reward[{place}].slotId"
                raise Problem(422, "Unknown slot", f"{field} {entry.slot!r} is not a slot of this event", field)
        clicked = (actions[entry.slot] for entry in body.reward if entry.value > 0)
        return await self._report(tenant, page, list(dict.fromkeys(clicked)))

    async def activate(self, request: Request) -> Response:
        """Activate an event: it was shown, so its rewards count, those already reported included."""
        tenant = self._tenant(request)
        page = await self._event(request, tenant, slots="/multislot/" in request.url.path)
        return await self._report(tenant, page, [], activated=True)

    async def configuration(self, request: Request) -> Response:
        """Personalizer's settings that have a meaning in this service."""
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

    async def _page(self, tenant: str, body: Rank, call: RankCall) -> tuple[str, EventPage]:
        """The event id and its page: the one that the id is bound to, or a new one."""
        event_id = body.event_id
        page = None if event_id is None else await self._find(tenant, event_id)
        if page is None:
            answer = await calls.rank(self._hub, tenant, call)
            event_id = event_id or answer.impression_id
            binding = FeedbackCall(token=answer.token, clicks=[], event_id=_binding(event_id))
            await calls.feedback(self._hub, tenant, [binding])  # refused if somebody else bound the id just now
            page = await self._find(tenant, event_id)
        if event_id is None or page is None:
            raise Problem(503, "Too slow", "the page was closed before its event id was kept; try again", retry_after=1)
        lists = (call.base_ranking, call.candidates)
        if (page.context, page.catalogue) != (call.context, digest_of(lists)):
            detail = f"eventId {event_id!r} came before with other actions; give a new event a new id"
            raise Problem(422, "Other event", detail, "eventId")
        return event_id, page

    async def _find(self, tenant: str, event_id: str) -> EventPage | None:
        return await self._hub.engine.event_page(tenant, _binding(event_id))

    async def _event(self, request: Request, tenant: str, slots: bool) -> EventPage:
        try:
            event_id = checked(unquote(request.path_params["event_id"], errors="strict"), "eventId")
        except UnicodeDecodeError as problem:
            raise Problem(422, "Invalid request", "eventId in the path is not UTF-8", "eventId") from problem
        page = await self._find(tenant, event_id)
        if page is None or (actions_of(page) is not None) != slots:
            what = "event with slots" if slots else "event without slots"
            raise Problem(404, "Unknown event", f"there is no {what} {event_id!r}, or no longer", "eventId")
        return page

    async def _report(self, tenant: str, page: EventPage, clicks: list[str], activated: bool = False) -> Response:
        call = FeedbackCall(impression_id=page.impression_id, clicks=clicks, activated=activated)
        (result,) = await calls.feedback(self._hub, tenant, [call])
        if isinstance(result, Problem):
            raise result
        return Response(status_code=204)


def _binding(event_id: str) -> str:
    """The name under which the store knows an event id: apart from those of reports, and not too long for one."""
    return "personalizer:" + hashlib.blake2b(event_id.encode(), digest_size=16).hexdigest()


async def _nothing_there(request: Request) -> Response:
    """404: evaluations, models, logs and policies are not offered."""
    detail = f"{request.scope['path'][:200]} is not offered; docs/engineers/personalizer.md lists what is"
    raise Problem(404, "Not found", detail)


def _refusing(handler: Handler, code: str) -> Handler:
    """The handler, with refusals in the form that the SDKs understand."""

    @functools.wraps(handler)
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
