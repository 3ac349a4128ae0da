"""The lines of an export: the facts of the log as they are, or as ``sessions`` or OpenSearch's ``ubi`` for others.

Pure: it takes facts and gives lines. A page whose window is open is left out, because its clicks
may still come; so is one that was asked for ahead and never shown. The store keeps the clicks of a page as a set, so an
event of ``ubi`` has the time of its page.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

ExportFormat = Literal["events", "sessions", "ubi"]
PAGE_FORMATS = ("sessions", "ubi")
"""Those that tell pages, of all arms or of one."""
Facts = dict[str, Any]


def lines_of(facts: Facts, form: ExportFormat, now: str, arm: str | None = None) -> Iterator[str]:
    """The lines that something in the log gives; ``events`` gives it as it is. ``now`` is RFC 3339 in UTC.

    >>> page = {"kind": "page", "at": "2026-03-01T12:00:00Z", "impression_id": "i", "context": "home"}
    >>> page |= {"arm": "off", "ranking": ["a", "b"], "clicks": ["b"], "closes_at": "2026-03-01T12:30:00.000Z"}
    >>> list(lines_of(page, "sessions", "2026-03-01T13:00:00.000Z"))
    ['{"query":"home","items":["a","b"],"clicked":["b"],"arm":"off","issued_at":"2026-03-01T12:00:00Z","impression_id":"i"}']
    >>> list(lines_of(page, "sessions", "2026-03-01T12:00:00.000Z"))
    []
    """
    if form == "events":
        yield line_of(facts)
    elif facts["kind"] == "page" and facts["closes_at"] <= now and arm in (None, facts["arm"]):
        # times are compared as texts: their order is the same
        yield from _session(facts) if form == "sessions" else _documents(facts)


def _session(facts: Facts) -> Iterator[str]:
    yield line_of(
        {
            "query": facts["context"],
            "items": facts["ranking"],
            "clicked": facts["clicks"],
            "arm": facts["arm"],
            "issued_at": facts["at"],
            "impression_id": facts["impression_id"],
        }
    )


def _documents(facts: Facts) -> Iterator[str]:
    """A query and its clicks, each behind the action line of a bulk request."""
    about = {"query_id": facts["impression_id"], "client_id": facts.get("visitor") or "unknown"}
    yield line_of({"index": {"_index": "ubi_queries", "_id": facts["impression_id"]}})
    yield line_of(
        {
            **about,
            "user_query": facts["context"],
            "timestamp": facts["at"],
            "query_response_id": facts["impression_id"],
            "query_response_hit_ids": facts["ranking"],
            "query_attributes": {name: facts.get(name) for name in ("arm", "policy", "leader_version")},
        }
    )
    for item in facts["clicks"]:
        position = {"ordinal": {"index": facts["ranking"].index(item) + 1}}
        yield line_of({"index": {"_index": "ubi_events"}})
        yield line_of(
            {
                **about,
                "action_name": "click",
                "timestamp": facts["at"],
                "event_attributes": {"object": {"object_id": item}, "position": position},
            }
        )


def line_of(facts: Facts) -> str:
    """Facts as a line of JSON."""
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
