"""Versions of a context, for answers."""

import json
from collections.abc import Sequence

from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.protocol.contexts import Context
from saferank.service.protocol.server import Server
from saferank.service.wire.views import LeaderChange, PairView
from saferank.store.contract import VersionRow

_MOST_PAIRS = 100


def leader_change(row: VersionRow) -> LeaderChange:
    """A leader and what brought it about."""
    return LeaderChange(
        version=row.version,
        leader=json.loads(row.leader),
        at=moment(row.at),
        cause=row.cause,  # type: ignore[arg-type]  # checked by the model
        impression_id=None if row.impression is None else identifiers.to_text(row.impression),
        evidence=_pairs(row, "gained"),
        lost=_pairs(row, "lost"),
        why=row.why,
    )


def _pairs(row: VersionRow, which: str) -> list[PairView]:
    pairs = json.loads(row.evidence)[which][:_MOST_PAIRS]
    return [PairView(better=better, worse=worse, s=s, n=n, decided=which == "gained") for better, worse, s, n in pairs]


async def versions_of(server: Server, context: Context, newest: int | None = None) -> Sequence[VersionRow]:
    """Versions oldest first, all or so many of the newest; those that are not published yet included."""
    rows = list(await server.store.versions(context.number, newest))
    last = rows[-1].version if rows else 0
    rows += [row for row in context.fold.versions if row.version > last]
    return rows if newest is None else rows[-newest:]
