"""The engine's numbers for the metrics page (their names are those of ``metrics.py``)."""

import math
from collections.abc import Mapping

from saferank.service.protocol.server import Server
from saferank.statistics.effect import Interval

_COUNTED = (
    "pages_total", "pages_explored_total", "feedback_accepted_total", "feedback_duplicate_total", "feedback_late_total",
    "feedback_not_as_shown_total", "feedback_refused_total",
)  # fmt: skip


def counters(server: Server) -> Mapping[str, float | Mapping[str, float]]:
    """What this process has counted since its start, and how things stand."""
    commits, closer = server.writer.counts, server.closer
    effect = server.guard.interval(server.now()) or Interval(math.nan, math.nan, math.nan)
    return {
        **{name: server.counts[name] for name in _COUNTED},
        "pages_closed_total": closer.closed,
        "pages_left_out_total": commits.left_out,
        **closer.arms,
        "pages_deleted_total": server.retention.deleted,
        "leader_changes_total": closer.versions,
        "alarms_total": server.counts["alarms_total"] + closer.alarms + server.guard.stops,
        "guardrail_stops_total": server.guard.stops,
        "effect_clicks": effect.estimate,
        "effect_clicks_low": effect.low,
        "effect_clicks_high": effect.high,
        "contexts": len(server.contexts),
        "kill_switches_on": server.switches.count,
        "servers": server.heart.servers,
        "shards_held": len(server.heart.leases),
        "fresh": server.heart.is_fresh(),
        "pending_writes": server.writer.pending,
        "commits_total": commits.commits,
        "commit_failures_total": commits.failures,
        "committed_events_total": commits.rows,
        "commit_seconds_total": commits.seconds,
        "last_commit_events": commits.last_rows,
        "last_commit_seconds": commits.last_seconds,
    }
