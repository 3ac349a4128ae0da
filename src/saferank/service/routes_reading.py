"""Looking: contexts, leaders, the story of a page, the log."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import WithJsonSchema

from saferank.service.calls import LARGEST, Id
from saferank.service.dependencies import ContextName, ImpressionName, Tenant, TheHub
from saferank.service.openapi import refusals
from saferank.service.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges

router = APIRouter()
_USUAL = (401, 403, 422, 429, 503)
_LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One JSON object a line, in the order of the log.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}
At = Annotated[
    str | None,
    Query(description="A version, or a moment like 2026-03-01T12:00:00Z; now if absent.", min_length=1, max_length=64),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0, "maximum": LARGEST}, {"type": "string", "format": "date-time"}]}
    ),
]


@router.get("/v1/contexts", summary="All contexts", responses=refusals(*_USUAL), operation_id="contexts")
async def contexts(hub: TheHub, tenant: Tenant) -> ContextList:
    """The contexts of the tenant with their leaders."""
    return hub.engine.contexts(tenant)


@router.get("/v1/contexts/{context}", summary="A context", responses=refusals(*_USUAL, 404), operation_id="context")
async def context(hub: TheHub, tenant: Tenant, name: ContextName) -> ContextView:
    """Leader, pairs, versions, arms and switches of a context."""
    return hub.engine.context(tenant, name)


@router.get(
    "/v1/contexts/{context}/leader",
    summary="The leader at a version or a moment",
    responses=refusals(*_USUAL, 404),
    operation_id="leader",
)
async def leader(hub: TheHub, tenant: Tenant, name: ContextName, at: At = None) -> LeaderAt:
    """Who led, and from when to when."""
    return await hub.engine.leader_at(tenant, name, at)


@router.get(
    "/v1/contexts/{context}/changes",
    summary="Changes of the leader, with evidence",
    responses=refusals(*_USUAL, 404),
    operation_id="changes",
)
async def changes(hub: TheHub, tenant: Tenant, name: ContextName) -> LeaderChanges:
    """Every leader there was, oldest first."""
    return await hub.engine.changes(tenant, name)


@router.get(
    "/v1/impressions/{impression_id}",
    summary="The full story of a page",
    responses=refusals(*_USUAL, 404),
    operation_id="impression",
)
async def impression(hub: TheHub, tenant: Tenant, impression_id: ImpressionName) -> ImpressionView:
    """What was shown, why, and what was clicked."""
    return await hub.engine.impression(tenant, impression_id)


@router.get(
    "/v1/export",
    summary="The log as JSON lines",
    responses={**refusals(*_USUAL, 404), **_LINES},
    response_class=StreamingResponse,
    operation_id="export",
)
async def export(
    hub: TheHub,
    tenant: Tenant,
    context: Annotated[Id | None, Query(description="Only this context.")] = None,
    since: Annotated[int | None, Query(ge=0, le=LARGEST, description="Only what comes after this seq.")] = None,
) -> StreamingResponse:
    """Every event of the tenant, for an archive or an audit elsewhere."""
    lines = hub.engine.export(tenant, context, since)
    first = await anext(lines, None)  # a refusal must come before the answer begins
    return StreamingResponse(_with_line_ends(first, lines), media_type="application/x-ndjson")


async def _with_line_ends(first: str | None, lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    if first is not None:
        yield first.encode() + b"\n"
    async for line in lines:
        yield line.encode() + b"\n"
