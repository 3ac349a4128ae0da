"""Acting: the kill switches, the way back to an earlier leader, beginning again, settings of a context."""

from fastapi import APIRouter, Request

from saferank.service.http.hub import ContextName, Operator, SwitchingTenant, Tenant, TheHub
from saferank.service.http.openapi import refusals, request_body
from saferank.service.wire.calls import KillCall, ResetCall, RollbackCall, SettingsCall
from saferank.service.wire.views import ContextView, SwitchView

router = APIRouter()
_USUAL = refusals(400, 401, 403, 404, 408, 413, 415, 422, 429, 503)
_SWITCH_EVERYWHERE = refusals(400, 401, 403, 408, 413, 415, 422, 429, 503)


@router.post(
    "/v1/kill",
    summary="Serve production's ranking everywhere, or end that",
    responses=_SWITCH_EVERYWHERE,
    openapi_extra=request_body("KillCall"),
    operation_id="kill_everywhere",
)
async def kill_everywhere(request: Request, hub: TheHub, tenant: SwitchingTenant) -> SwitchView:
    """Durable: it holds after a restart as well. No other call and no load refuses it."""
    call = await hub.call(KillCall, request.scope["headers"], request.receive)
    return await hub.engine.kill(tenant, None, call.on, call.why)


@router.post(
    "/v1/operator/kill",
    summary="Serve production's ranking to all tenants, or end that",
    responses=_SWITCH_EVERYWHERE,
    openapi_extra=request_body("KillCall"),
    operation_id="kill_all_tenants",
    dependencies=[Operator],
)
async def kill_all_tenants(request: Request, hub: TheHub) -> SwitchView:
    """Needs an operator key. Durable; no tenant can end it."""
    call = await hub.call(KillCall, request.scope["headers"], request.receive)
    return await hub.engine.kill_all_tenants(call.on, call.why)


@router.post(
    "/v1/contexts/{context}/kill",
    summary="Serve production's ranking in a context, or end that",
    responses=_USUAL,
    openapi_extra=request_body("KillCall"),
    operation_id="kill",
)
async def kill(request: Request, hub: TheHub, tenant: SwitchingTenant, name: ContextName) -> SwitchView:
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


@router.post(
    "/v1/contexts/{context}/reset",
    summary="Forget everything that was learnt in a context",
    responses=_USUAL,
    openapi_extra=request_body("ResetCall"),
    operation_id="reset",
)
async def reset(request: Request, hub: TheHub, tenant: Tenant, name: ContextName) -> ContextView:
    """Learning begins again from production's ranking; pages that are open do not count, the history stays.

    The context takes the policy, the rule and the other terms that the service is set to now.
    """
    call = await hub.call(ResetCall, request.scope["headers"], request.receive)
    return await hub.engine.reset(tenant, name, call.why, call.certificate_days)


@router.post(
    "/v1/contexts/{context}/settings",
    summary="Mode and holdout share of a context",
    responses=_USUAL,
    openapi_extra=request_body("SettingsCall"),
    operation_id="set_context",
)
async def set_context(request: Request, hub: TheHub, tenant: Tenant, name: ContextName) -> ContextView:
    """Durable. The call replaces the one before: what it leaves out is as the service is set."""
    call = await hub.call(SettingsCall, request.scope["headers"], request.receive)
    return await hub.engine.set_context(tenant, name, call)
