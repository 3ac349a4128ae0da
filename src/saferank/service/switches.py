"""Kill switches and rollback: what an operator does. Answered when it is on disk."""

import asyncio

from saferank.service.catalogues import pack_catalogue
from saferank.service.clock import moment
from saferank.service.context import Context, SavedContext, Switch
from saferank.service.core import Core
from saferank.service.problems import Problem
from saferank.service.replay import context_at_version
from saferank.service.state import to_json
from saferank.service.views import SwitchView
from saferank.store.events import ALL, CatalogueRow, Kind


def known_context(core: Core, tenant: str, name: str) -> Context:
    """A context by name; Problem 404 for an unknown one."""
    context = core.state.by_name.get((tenant, name))
    if context is None:
        raise Problem(404, "Unknown context", f"there is no context {name!r}; rank opens one", "context")
    return context


def switch_view(switch: Switch | None) -> SwitchView:
    """A switch for an answer."""
    if switch is None:
        return SwitchView(on=False)
    return SwitchView(on=True, since=moment(switch.since), why=switch.why)


class Switches:
    """Carries out what an operator asks for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def kill(self, tenant: str, name: str | None, on: bool, why: str) -> SwitchView:
        """Turn a switch; a switch that is on already keeps its time and reason."""
        core = self._core
        context = None if name is None else known_context(core, tenant, name)
        number = ALL if context is None else context.number
        if (self._switch(tenant, context) is not None) != on:
            facts = to_json({"tenant": tenant, "why": why})
            core.state.kill(core.write(Kind.KILL if on else Kind.UNKILL, number, core.now(), body=facts))
        await core.journal.until(core.journal.seq)
        return switch_view(self._switch(tenant, context))

    def _switch(self, tenant: str, context: Context | None) -> Switch | None:
        return self._core.state.killed.get(tenant) if context is None else context.killed

    async def rollback(self, tenant: str, name: str, version: int, why: str) -> None:
        """Make the leader of an earlier version the leader again; what was learnt after it is forgotten."""
        core, context = self._core, known_context(self._core, tenant, name)
        if not 1 <= version <= context.version:
            detail = f"context {name!r} has versions 1 to {context.version}, not {version}"
            raise Problem(404, "Unknown version", detail, "version")
        await core.journal.until(core.journal.seq)
        saved = await asyncio.to_thread(context_at_version, core.store, context.number, version)
        self._roll_back(context, version, saved, why)
        await core.journal.until(core.journal.seq)

    def _roll_back(self, context: Context, version: int, saved: SavedContext, why: str) -> None:
        """Event and snapshot in one step, so that a start never has to carry out a rollback."""
        core, catalogue = self._core, CatalogueRow(*pack_catalogue(saved.base, saved.candidates))
        core.journal.batch.catalogues.append(catalogue)
        facts = to_json({"version": version, "why": why, "catalogue": catalogue.digest.hex()})
        now = core.now()
        core.close_due(context, now)
        event = core.write(Kind.ROLLBACK, context.number, now, body=facts)
        core.state.rollback(event, saved)
        core.snapshot(context)
