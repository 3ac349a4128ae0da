"""The engine's numbers for the metrics page (their names are those of ``metrics.py``)."""

from collections.abc import Mapping

from saferank.service.core import Core

_COUNTED = (
    "pages_total", "pages_counted_total", "feedback_accepted_total", "feedback_duplicate_total", "feedback_late_total",
    "pages_closed_total", "pages_recovered_total", "leader_changes_total", "alarms_total",
)  # fmt: skip


def counters(core: Core) -> Mapping[str, float]:
    """What was counted since the start, and how things stand."""
    state, journal = core.state, core.journal
    contexts, commits = state.contexts.values(), journal.counts
    return {
        **{name: core.counts[name] for name in _COUNTED},
        "contexts": len(contexts),
        "contexts_killed": sum(context.killed is not None or context.tenant in state.killed for context in contexts),
        "contexts_frozen": sum(context.contradiction is not None for context in contexts),
        "open_pages": len(state.open_pages),
        "pending_writes": journal.pending,
        "commits_total": commits.commits,
        "commit_failures_total": commits.failures,
        "committed_events_total": commits.events,
        "commit_seconds_total": commits.seconds,
        "last_commit_events": commits.last_events,
        "last_commit_seconds": commits.last_seconds,
    }
