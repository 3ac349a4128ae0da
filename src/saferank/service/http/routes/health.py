"""For those who run it: is it alive, is it ready, and how is it doing."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from saferank._version import __version__
from saferank.service.http.hub import TheHub
from saferank.service.http.metrics import CONTENT_TYPE
from saferank.service.http.openapi import refusals
from saferank.service.settings import is_loopback
from saferank.service.wire.calls import Answer
from saferank.service.wire.problems import Problem

router = APIRouter()
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "For Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


class Health(Answer):
    """The process answers."""

    status: Literal["ok"]
    version: str


@router.get("/healthz", summary="Is the process alive", operation_id="healthz")
async def healthz() -> Health:
    """Always ok: whoever reads this has been answered."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", summary="Can it keep its promises", responses=refusals(503), operation_id="readyz")
async def readyz(hub: TheHub) -> Health:
    """503 while it stops, and while the disk does not take what must be written."""
    reason = "the service is stopping" if hub.stopping else hub.engine.not_ready()
    if reason is not None:
        raise Problem(503, "Not ready", reason, retry_after=1)
    return Health(status="ok", version=__version__)


@router.get(
    "/metrics",
    summary="Metrics",
    responses={**refusals(401, 403, 503), **_TEXT},
    response_class=Response,
    operation_id="metrics",
)
async def metrics(request: Request, hub: TheHub) -> Response:
    """Open to this machine; from elsewhere, or through a proxy, it needs a rank key."""
    if not _is_local(request):
        hub.keys.ranking_tenant(request.scope["headers"])
    hub.metrics.lag.set(hub.pulse.last_lag)
    hub.metrics.longest_lag.set(hub.pulse.longest_lag)
    return Response(hub.metrics.text(), media_type=CONTENT_TYPE)


def _is_local(request: Request) -> bool:
    relayed = "forwarded" in request.headers or "x-forwarded-for" in request.headers
    return request.client is not None and is_loopback(request.client.host) and not relayed
