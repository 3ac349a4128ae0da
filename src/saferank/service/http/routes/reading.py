"""Looking: contexts, leaders, the story of a page, the log."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import WithJsonSchema

from saferank.service.clock import moment
from saferank.service.http.hub import ContextName, ImpressionName, Tenant, TheHub
from saferank.service.http.openapi import refusals
from saferank.service.wire.calls import LARGEST, Id
from saferank.service.wire.effect_views import EffectView, OverviewView
from saferank.service.wire.exports import Converter, ExportFormat
from saferank.service.wire.shadow_views import ShadowView
from saferank.service.wire.views import ContextList, ContextView, ImpressionView, LeaderAt, LeaderChanges

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


@router.get("/v1/overview", summary="Everything at a glance", responses=refusals(*_USUAL), operation_id="overview")
async def overview(hub: TheHub, tenant: Tenant) -> OverviewView:
    """One sentence, the effect, the funnel, the newest changes, feedback and alarms, over all contexts."""
    return await hub.engine.overview(tenant)


@router.get(
    "/v1/contexts",
    summary="All contexts",
    responses=refusals(*_USUAL),
    response_model=ContextList,
    operation_id="contexts",
)
async def contexts(hub: TheHub, tenant: Tenant) -> Response:
    """The contexts of the tenant with their leaders."""
    listed = await hub.engine.contexts(tenant)  # there may be 20,000: the framework would check every one again
    return Response(listed.model_dump_json(), media_type="application/json")


@router.get("/v1/contexts/{context}", summary="A context", responses=refusals(*_USUAL, 404), operation_id="context")
async def context(hub: TheHub, tenant: Tenant, name: ContextName) -> ContextView:
    """Leader, pairs, versions, arms and switches of a context."""
    return await hub.engine.context(tenant, name)


@router.get(
    "/v1/effect",
    summary="Served pages beside the holdout, over all contexts",
    responses=refusals(*_USUAL),
    operation_id="effect_everywhere",
)
async def effect_everywhere(hub: TheHub, tenant: Tenant) -> EffectView:
    """Intervals that hold at every look, and how far the guardrail is from stopping."""
    return await hub.engine.effect(tenant, None)


@router.get(
    "/v1/contexts/{context}/effect",
    summary="Served pages beside the holdout, in a context",
    responses=refusals(*_USUAL, 404),
    operation_id="effect",
)
async def effect(hub: TheHub, tenant: Tenant, name: ContextName) -> EffectView:
    """Intervals that hold at every look, and how far the guardrail is from stopping."""
    return await hub.engine.effect(tenant, name)


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
    "/v1/shadow", summary="What shadow pages tell, all contexts", responses=refusals(*_USUAL), operation_id="shadow"
)
async def shadow(hub: TheHub, tenant: Tenant) -> ShadowView:
    """How often the policy's page differs from production's, and what is known of its clicks."""
    return await hub.engine.shadow(tenant, None)


@router.get(
    "/v1/contexts/{context}/shadow",
    summary="What shadow pages tell",
    responses=refusals(*_USUAL, 404),
    operation_id="context_shadow",
)
async def context_shadow(hub: TheHub, tenant: Tenant, name: ContextName) -> ShadowView:
    """The same for one context."""
    return await hub.engine.shadow(tenant, name)


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
    form: Annotated[
        ExportFormat,
        Query(alias="format", description="events: everything; sessions or ubi: closed pages with their clicks."),
    ] = "events",
) -> StreamingResponse:
    """Every event of the tenant, for an archive or an audit elsewhere; or its pages, for other programs."""
    lines = _converted(hub.engine.export(tenant, context, since), form, hub.engine.now())
    first = await anext(lines, None)  # a refusal must come before the answer begins
    return StreamingResponse(_with_line_ends(first, lines), media_type="application/x-ndjson")


async def _converted(lines: AsyncIterator[str], form: ExportFormat, now: int) -> AsyncIterator[str]:
    if form == "events":
        async for line in lines:
            yield line
        return
    converter = Converter(form, moment(now))
    async for line in lines:
        for made in converter.take(json.loads(line)):
            yield made


async def _with_line_ends(first: str | None, lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    if first is not None:
        yield first.encode() + b"\n"
    async for line in lines:
        yield line.encode() + b"\n"
