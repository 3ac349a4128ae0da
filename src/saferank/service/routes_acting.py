"""Acting: the kill switches and the way back to an earlier leader."""

from fastapi import APIRouter, Request

from saferank.service.calls import KillCall, RollbackCall
from saferank.service.dependencies import ContextName, Tenant, TheHub
from saferank.service.openapi import refusals, request_body
from saferank.service.views import ContextView, SwitchView

router = APIRouter()
_USUAL = refusals(400, 401, 403, 404, 408, 413, 415, 422, 429, 503)
_EVERYWHERE = refusals(400, 401, 403, 408, 413, 415, 422, 429, 503)


@router.post(
    "/v1/kill",
    summary="Serve production's ranking everywhere, or end that",
    responses=_EVERYWHERE,
    openapi_extra=request_body("KillCall"),
    operation_id="kill_everywhere",
)
async def kill_everywhere(request: Request, hub: TheHub, tenant: Tenant) -> SwitchView:
    """Durable: it holds after a restart as well."""
    call = await hub.call(KillCall, request.scope["headers"], request.receive)
    return await hub.engine.kill(tenant, None, call.on, call.why)


@router.post(
    "/v1/contexts/{context}/kill",
    summary="Serve production's ranking in a context, or end that",
    responses=_USUAL,
    openapi_extra=request_body("KillCall"),
    operation_id="kill",
)
async def kill(request: Request, hub: TheHub, tenant: Tenant, name: ContextName) -> SwitchView:
    """Durable: it holds after a restart as well."""
    call = await hub.call(KillCall, request.scope["headers"], request.receive)
    return await hub.engine.kill(tenant, name, call.on, call.why)


@router.post(
    "/v1/contexts/{context}/rollback",
    summary="Back to an earlier leader",
    responses=_USUAL,
    openapi_extra=request_body("RollbackCall"),
    operation_id="rollback",
)
async def rollback(request: Request, hub: TheHub, tenant: Tenant, name: ContextName) -> ContextView:
    """What was learnt after it is forgotten; the history is not."""
    call = await hub.call(RollbackCall, request.scope["headers"], request.receive)
    return await hub.engine.rollback(tenant, name, call.version, call.why)
