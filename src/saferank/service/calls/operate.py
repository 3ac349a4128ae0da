"""Kill switches, rollback, reset and settings of contexts: what an operator does. Answered when every server obeys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from saferank.service.knowledge.fold import to_json
from saferank.service.knowledge.knowledge import Knowledge
from saferank.service.knowledge.view import items_of
from saferank.service.protocol.contexts import Context, oldest_version, other_terms, terms_by_settings
from saferank.service.protocol.heartbeat import LARGEST_LEAP
from saferank.service.protocol.switches import Switch, switch_view
from saferank.service.wire.calls import SettingsCall, TrafficCall
from saferank.service.wire.problems import Problem, unavailable
from saferank.service.wire.views import ContextView, SwitchView, TrafficView
from saferank.store.contract import DamagedStoreError, OperationKind, OperationRow, StoreUnavailableError

if TYPE_CHECKING:
    from saferank.service.server import Server

POLL_SECONDS = 0.05


async def kill(server: "Server", tenant: str, name: str | None, on: bool, why: str) -> SwitchView:
    """Turn a switch of a context, of a tenant or of ALL_TENANTS; one that is on already keeps its time and reason.

    While the store does not answer or is damaged, a switch is turned on for this server alone, and the answer says
    so.
    """
    number = 0 if name is None else (await server.known_context(tenant, name)).number
    kind = OperationKind.KILL if on else OperationKind.UNKILL
    try:
        await _obeyed_everywhere(server, await _add(server, tenant, number, kind, to_json({"why": why})))
    except (StoreUnavailableError, DamagedStoreError) as problem:
        if on:
            on_already = server.switches.switch(tenant, number)
            server.switches.turn(tenant, number, on_already or Switch(server.now(), why))
        raise unavailable(problem) from problem
    switches = server.switches
    return switch_view(switches.switch(tenant, number)) if number else switches.everywhere(tenant)


async def rollback(server: "Server", tenant: str, name: str, version: int, why: str) -> ContextView:
    """Make the leader of an earlier version the leader again; what was learnt after it is forgotten."""
    context = await server.known_context(tenant, name)
    await _close_and_follow(server)
    newest = context.fold.version
    if not 1 <= version <= newest:
        detail = f"context {name!r} has versions 1 to {newest}, not {version}"
        raise Problem(404, "Unknown version", detail, "version")
    await _check_kept(server, context, version)
    body = to_json({"version": version, "why": why})
    await _carried_out(server, await _add(server, tenant, context.number, OperationKind.ROLLBACK, body))
    return await server.show_context(tenant, name)


async def reset(
    server: "Server",
    tenant: str,
    name: str,
    why: str,
    certificate_days: float | None = None,
    trust: float | None = None,
) -> ContextView:
    """Forget what was learnt in a context; learning begins again from production's ranking.

    The context takes policy, rule and source_daily_pages of the settings, certificate_days and trust of the call or
    else of the settings.
    """
    context = await server.known_context(tenant, name)
    terms = terms_by_settings(server.settings, certificate_days, trust)
    await _close_and_follow(server)
    _check_servable(context, terms)
    body = to_json({"why": why, "terms": terms})
    await _carried_out(server, await _add(server, tenant, context.number, OperationKind.RESET, body))
    return await server.show_context(tenant, name)


async def set_context(server: "Server", tenant: str, name: str, call: SettingsCall) -> ContextView:
    """Give a context settings of its own; what the call leaves out is as the service is set."""
    context, settings = await server.known_context(tenant, name), server.settings
    share = settings.holdout_share if call.holdout_share is None else call.holdout_share
    drop = settings.guardrail_drop if call.guardrail_drop is None else call.guardrail_drop
    if drop and not share:
        detail = (
            "without a holdout the guardrail (guardrail_drop) has nothing to compare with; name a holdout_share "
            "above 0, or guardrail_drop 0"
        )
        raise Problem(422, "No holdout", detail, "holdout_share")
    body = to_json(structs.asdict(call))
    await _obeyed_everywhere(server, await _add(server, tenant, context.number, OperationKind.SETTINGS, body))
    return await server.show_context(tenant, name)


async def set_traffic(server: "Server", tenant: str, call: TrafficCall) -> TrafficView:
    """Let the policy choose the pages of a share of a tenant's visitors."""
    body = to_json(structs.asdict(call))
    await _obeyed_everywhere(server, await _add(server, tenant, 0, OperationKind.TRAFFIC, body))
    return server.switches.traffic(server.settings, tenant)


async def _close_and_follow(server: "Server") -> None:
    """Fold due windows into the knowledge before something of it is taken away."""
    await server.writer.flush()
    await server.closer.close_due()
    await server.follower.follow()


async def _carried_out(server: "Server", operation: OperationRow) -> None:
    await _published(server, operation.context, operation)
    await _obeyed_everywhere(server, operation)


async def _check_kept(server: "Server", context: Context, version: int) -> None:
    if version < context.fold.terms_version:
        detail = f"context {context.row.name!r}: {other_terms(context.fold, version)}"
        raise Problem(404, "Version under other terms", detail, "version")
    oldest = await oldest_version(server.store, context.number)
    if version < oldest:
        name, until = context.row.name, f"1 to {oldest - 1}" if oldest > 2 else "1"
        detail = f"version {until} of context {name!r} cannot be restored: the pages that led there were deleted"
        raise Problem(
            404, "Deleted version", f"{detail} (keep_days or forget); the oldest that can be is {oldest}", "version"
        )


async def _add(server: "Server", tenant: str, context: int, kind: OperationKind, body: str) -> OperationRow:
    operation = await server.store.add_operation(tenant, context, kind, body)
    await server.heartbeat.hear()
    return operation


async def _published(server: "Server", context: int, operation: OperationRow) -> None:
    """Return when a rollback or reset is in the knowledge that all servers read."""
    for _ in range(_patience(server)):
        await server.closer.close_due()
        publication = await server.store.publication(context)
        if publication is not None and publication.operation >= operation.number:
            await server.follower.follow()
            return
        await server.clock.sleep(POLL_SECONDS)
    raise Problem(503, "Not carried out", "no server carried it out in time; try again", retry_after=5)


async def _obeyed_everywhere(server: "Server", operation: OperationRow) -> None:
    """Return when every other live server has acknowledged an operation, or its lease has run out.

    The store's clock may have leapt by less than is noticed, and so have ended leases too early: those that ended
    lately are waited for as well, for as long as a lease can last.
    """
    lease = server.settings.freshness_seconds
    for turn in range(_patience(server)):
        ended = round(1000 * LARGEST_LEAP) if turn * POLL_SECONDS < lease else 0
        others = [row for row in await server.store.servers(ended) if row.server != server.name]
        if all(row.acknowledged >= operation.number for row in others):
            return
        await server.clock.sleep(POLL_SECONDS)
    raise Problem(503, "Not acknowledged", "a server did not acknowledge in time; try again", retry_after=5)


def _patience(server: "Server") -> int:
    """How often to ask: until the leases of all servers that stopped have run out, twice."""
    return round(2 * server.settings.freshness_seconds / POLL_SECONDS)


def _check_servable(context: Context, terms: Mapping[str, Any]) -> None:
    """Problem 422 when the policy of the settings cannot learn the items of a context."""
    taken = context.terms._replace(**terms)
    try:
        Knowledge(taken, context.fold.k, items_of(context.fold.look))
    except ValueError as problem:
        detail = f"context {context.row.name!r} cannot be served by the policy of the settings: {problem}"
        raise Problem(422, "Policy does not fit", detail, "context") from problem
