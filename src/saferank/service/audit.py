"""Questions about the past, answered from the log: the leader then, the story of a page, everything."""

import asyncio
import itertools
from collections.abc import AsyncIterator

from saferank.service import identifiers
from saferank.service.clock import milliseconds, moment
from saferank.service.context import Context
from saferank.service.core import Core
from saferank.service.export import describe, to_line
from saferank.service.leaders import leader_change
from saferank.service.problems import Problem
from saferank.service.story import story
from saferank.service.switches import known_context
from saferank.service.views import ImpressionView, LeaderAt, LeaderChanges
from saferank.store.events import Event, Kind, LeaderRow

_LINES_AT_ONCE = 500


class Audit:
    """Reads the log in threads, with connections of its own. What is not on disk yet is waited for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def changes(self, tenant: str, name: str) -> LeaderChanges:
        """All leaders of a context, oldest first."""
        context = await self._written(tenant, name)
        rows = await asyncio.to_thread(self._leaders, context.number)
        return LeaderChanges(context=name, changes=[leader_change(row) for row in rows])

    async def leader_at(self, tenant: str, name: str, at: str | None) -> LeaderAt:
        """The leader at a version or a moment."""
        context = await self._written(tenant, name)
        found = await asyncio.to_thread(self._leader_at, context, at)
        if found is None:
            detail = f"context {name!r} has versions 1 to {context.version}; there is no leader at {at!r}"
            raise Problem(404, "Unknown version", detail, "at")
        row, following = found
        change = leader_change(row)
        return LeaderAt(
            context=name,
            version=row.version,
            leader=change.leader,
            since=change.at,
            until=None if following is None else moment(following.at),
        )

    async def _written(self, tenant: str, name: str) -> Context:
        context = known_context(self._core, tenant, name)
        await self._core.journal.until(self._core.journal.seq)
        return context

    def _leaders(self, number: int) -> list[LeaderRow]:
        with self._core.store.reading() as reader:
            return [LeaderRow(*row) for row in reader.rows("leaders", number)]

    def _leader_at(self, context: Context, at: str | None) -> tuple[LeaderRow, LeaderRow | None] | None:
        with self._core.store.reading() as reader:
            if at is None:
                row = next(iter(reader.rows("latest_leaders", context.number, 1)), None)
            elif at.isascii() and at.isdigit() and len(at) < 16:
                row = reader.row("leader_of_version", context.number, int(at))
            else:
                row = reader.row("leader_at_moment", context.number, _milliseconds(at))
            if row is None:
                return None
            found = LeaderRow(*row)
            following = reader.row("leader_of_version", context.number, found.version + 1)
            return found, None if following is None else LeaderRow(*following)

    async def impression(self, tenant: str, impression_id: str) -> ImpressionView:
        """The story of a page."""
        impression = identifiers.impression_id(impression_id)
        await self._core.journal.until(self._core.journal.seq)
        found = None if impression is None else await asyncio.to_thread(self._story, tenant, impression)
        if found is None:
            raise Problem(404, "Unknown impression", f"there is no impression {impression_id}", "impression_id")
        return found

    def _story(self, tenant: str, impression: bytes) -> ImpressionView | None:
        with self._core.store.reading() as reader:
            events = [Event(*row) for row in reader.rows("events_of_impression", impression)]
            pages = [event for event in events if event.kind == Kind.PAGE]
            context = self._core.state.contexts.get(pages[0].context) if pages else None
            if context is None or context.tenant != tenant:
                return None
            return story(reader, context, pages[0], [event for event in events if event.kind == Kind.CLICKS])

    async def export(self, tenant: str, context: str | None, since: int | None) -> AsyncIterator[str]:
        """The events of a tenant as JSON lines, oldest first; a few hundred are read at a time."""
        numbers = {known_context(self._core, tenant, context).number} if context is not None else None
        await self._core.journal.until(self._core.journal.seq)
        following, end = 0 if since is None else since + 1, self._core.journal.durable
        while following <= end:
            lines, following = await asyncio.to_thread(self._lines, tenant, numbers, following)
            for line in lines:
                yield line

    def _lines(self, tenant: str, numbers: set[int] | None, since: int) -> tuple[list[str], int]:
        """Lines of the next events, and the number of the event to go on with."""
        contexts, lines, following = self._core.state.contexts, [], since
        with self._core.store.reading() as reader:
            for row in itertools.islice(reader.rows("events_from", since), _LINES_AT_ONCE):
                event = Event(*row)
                following = event.seq + 1
                if numbers is None or event.context in numbers:
                    facts = describe(event, contexts.get(event.context), reader)
                    if facts is not None and facts.pop("tenant") == tenant:
                        lines.append(to_line(facts))
        return lines, following if following > since else self._core.journal.durable + 1


def _milliseconds(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError as problem:
        raise Problem(422, "Not a version or moment", f"{problem}, nor a version like 7", "at") from problem
