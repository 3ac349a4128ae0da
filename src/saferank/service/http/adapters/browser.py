"""What a web page needs: ``saferank.js``, and a route for ``navigator.sendBeacon``, which can send no headers."""

from importlib.resources import files
from typing import TYPE_CHECKING

from saferank.service.http.endpoints import Endpoints, Reply, Request, reported
from saferank.service.wire.calls import (
    CallBody,
    FeedbackAnswer,
    FeedbackCall,
    Id,
    PageItems,
    Token,
    check_distinct,
    decoded,
)
from saferank.service.wire.problems import Problem

if TYPE_CHECKING:
    from saferank.service.http.app import App

LARGEST_BEACON = 65_536
"""Browsers send no more."""
_SCRIPT = Reply(
    (files(__package__) / "saferank.js").read_bytes(),
    b"text/javascript; charset=utf-8",
    ((b"cache-control", b"public, max-age=3600"), (b"cross-origin-resource-policy", b"cross-origin")),
)
endpoints = Endpoints()


class BeaconCall(CallBody):
    """A feedback call by token."""

    token: Token
    clicks: PageItems
    event_id: Id | None = None

    def __post_init__(self) -> None:
        """What the types cannot say."""
        check_distinct("clicks", self.clicks)


@endpoints.get("/saferank.js", "The script for web pages", b"text/javascript", "anybody")
async def script(app: "App", request: Request) -> Reply:
    """Reports clicks from a web page."""
    return _SCRIPT


@endpoints.post(
    "/v1/beacon",
    "Feedback by token as a text body, for `navigator.sendBeacon`",
    FeedbackAnswer,
    "anybody",
    BeaconCall,
    also=(401, 403, 404, 409, 429, 503),
)
async def beacon(app: "App", request: Request) -> FeedbackAnswer:
    """The key is in the query, as `key`."""
    _check_origin(app, request)
    key = request.query().get("key")
    caller = app.keys.caller_as("feedback", request.headers if key is None else [(b"x-api-key", key.encode())])
    app.limits.admit(caller.tenant)
    call = decoded(await request.body(LARGEST_BEACON, any_type=True), BeaconCall)
    return await reported(
        app, caller.tenant, FeedbackCall(token=call.token, clicks=call.clicks, event_id=call.event_id)
    )


def _check_origin(app: "App", request: Request) -> None:
    """A text body needs no permission of the browser to be sent, so the page that sends it is checked here."""
    given = request.header(b"origin")
    origin = "" if given is None else given.decode("latin-1")
    if given is None or origin in app.settings.cors_origins:
        return
    if origin.partition("://")[2] != (request.header(b"host") or b"").decode("latin-1"):
        raise Problem(403, "Foreign origin", f"pages of {origin[:100]!r} may not report; cors_origins names who may")
