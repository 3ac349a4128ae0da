"""Rows of the table of leaders, for answers."""

import json

from saferank.service import identifiers
from saferank.service.clock import moment
from saferank.service.views import LeaderChange, PairView
from saferank.store.events import LeaderRow


def leader_change(row: LeaderRow) -> LeaderChange:
    """A leader and what brought it about."""
    return LeaderChange(
        version=row.version,
        leader=json.loads(row.leader),
        at=moment(row.at),
        cause=row.cause,  # type: ignore[arg-type]  # checked by the model
        impression_id=None if row.impression is None else identifiers.to_text(row.impression),
        evidence=[
            PairView(better=better, worse=worse, s=s, n=n, decided=True)
            for better, worse, s, n in json.loads(row.evidence)
        ],
        why=row.why,
    )
