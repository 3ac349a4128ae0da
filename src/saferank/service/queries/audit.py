"""Questions about the past: the leader then, the story of a page, everything."""

from collections.abc import AsyncIterator

from saferank.service import identifiers
from saferank.service.clock import milliseconds, moment
from saferank.service.protocol.contexts import Context
from saferank.service.protocol.server import Server, unavailable
from saferank.service.queries.export import export_lines
from saferank.service.queries.leaders import leader_change, versions_of
from saferank.service.queries.story import story
from saferank.service.wire.problems import Problem
from saferank.service.wire.views import ImpressionView, LeaderAt, LeaderChanges
from saferank.store.contract import StoreUnavailableError, VersionRow
from saferank.store.page_record import unpacked


class Audit:
    """Reads the store. What this server has answered and not written yet is waited for."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All leaders of a context, oldest first."""
        context = await self._server.known_context(tenant, name)
        rows = await self._versions(context)
        return LeaderChanges(context=name, changes=[leader_change(row) for row in rows])

    async def _versions(self, context: Context) -> list[VersionRow]:
        try:
            return list(await versions_of(self._server, context))
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version or a moment."""
        context = await self._server.known_context(tenant, name)
        rows = await self._versions(context)
        row = _row_at(rows, at)
        if row is None:
            detail = f"context {name!r} has versions 1 to {len(rows)}; there is no leader at {at!r}"
            raise Problem(404, "Unknown version", detail, "at")
        change, following = leader_change(row), next((other for other in rows if other.version > row.version), None)
        return LeaderAt(
            context=name,
            version=row.version,
            leader=change.leader,
            since=change.at,
            until=None if following is None else moment(following.at),
        )

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The story of a page."""
        impression = identifiers.impression_id(impression_id)
        await self._server.settle()
        try:
            page = None if impression is None else await self._server.store.page(impression)
            record = None if page is None else unpacked(page.record)
            if page is None or record is None or record.tenant != tenant:
                raise Problem(404, "Unknown impression", f"there is no impression {impression_id}", "impression_id")
            context = await self._server.known_context(tenant, record.context)
            return await story(self._server, context, page, record)
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem

    async def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """What happened to a tenant as JSON lines, oldest first; pages are read a few hundred at a time."""
        if context is not None:
            row = (await self._server.known_context(tenant, context)).row
            rows = {row.id: row}
        await self._server.settle()
        try:
            if context is None:
                rows = {row.id: row for row in await self._server.store.contexts() if row.tenant == tenant}
            whose = tenant if context is None else None
            async for line in export_lines(self._server.store, rows, whose, -1 if since is None else since):
                yield line
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem


def _row_at(rows: list[VersionRow], at: str | None) -> VersionRow | None:
    if at is None:
        return rows[-1]
    if at.isascii() and at.isdigit() and len(at) < 16:
        return next((row for row in rows if row.version == int(at)), None)
    time = _milliseconds(at)
    return next((row for row in reversed(rows) if row.at <= time), None)


def _milliseconds(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError as problem:
        raise Problem(422, "Not a version or moment", f"{problem}, nor a version like 7", "at") from problem
