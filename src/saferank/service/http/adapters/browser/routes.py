"""The script for web pages, and feedback in a text body."""

from importlib.resources import files

from fastapi import Request, Response
from pydantic import Field
from starlette.routing import Route

from saferank.service.http.adapters import calls
from saferank.service.http.hub import Hub, parsed, read_body, understood
from saferank.service.wire.calls import MOST_POSITIONS, CallBody, DistinctIds, FeedbackCall, Id, Token
from saferank.service.wire.problems import Problem

SCRIPT, BEACON = "/saferank.js", "/v1/beacon"
LARGEST_BEACON = 65_536
"""Browsers send no more."""


class BeaconCall(CallBody):
    """A feedback call by token."""

    token: Token
    clicks: DistinctIds = Field(max_length=MOST_POSITIONS)
    event_id: Id | None = None


def browser_routes(hub: Hub) -> list[Route]:
    """Both routes."""
    script = (files(__package__) / "saferank.js").read_bytes()

    async def serve(request: Request) -> Response:
        """The script for web pages."""
        headers = {"cache-control": "public, max-age=3600", "cross-origin-resource-policy": "cross-origin"}
        return Response(script, media_type="text/javascript", headers=headers)

    async def beacon(request: Request) -> Response:
        """Feedback by token as a text body, for `navigator.sendBeacon`. The key is in the query, as `key`."""
        _check_origin(request, hub)
        key = request.query_params.get("key")
        caller = hub.keys.caller(request.scope["headers"] if key is None else [(b"x-api-key", key.encode())])
        hub.limits.admit(caller.tenant)
        limit = min(LARGEST_BEACON, hub.settings.max_body_bytes)
        call = understood(BeaconCall, parsed(await read_body(request.receive, limit, hub.settings.body_seconds)))
        report = FeedbackCall(token=call.token, clicks=call.clicks, event_id=call.event_id)
        (result,) = await calls.feedback(hub, caller.tenant, [report])
        if isinstance(result, Problem):
            raise result
        return Response(result.model_dump_json(), media_type="application/json")

    return [Route(SCRIPT, serve, methods=["GET"]), Route(BEACON, beacon, methods=["POST"])]


def _check_origin(request: Request, hub: Hub) -> None:
    """A text body needs no permission of the browser to be sent, so the page that sends it is checked here."""
    origin = request.headers.get("origin")
    if origin is None or origin in hub.settings.cors_origins:
        return
    if origin.partition("://")[2] != request.headers.get("host"):
        raise Problem(403, "Foreign origin", f"pages of {origin[:100]!r} may not report; cors_origins names who may")
