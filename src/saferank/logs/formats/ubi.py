"""ubi: OpenSearch User Behavior Insights, queries and events as JSON documents, one a line.

    {"index": {"_index": "ubi_queries"}}
    {"query_id": "1", "user_query": "lamp", "query_response_hit_ids": ["a", "b"]}
    {"index": {"_index": "ubi_events"}}
    {"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}

The action lines of a bulk request may be left out, and a document may be wrapped as a search returns it, in
``_source``. An event belongs to the newest query with its id that showed its object, wherever in the file. A query
without hits is no page. Events with other actions than ``click`` are skipped.
"""

from collections.abc import Mapping

from saferank.logs.formats.event_tables import JoinedPage, JoiningReader
from saferank.logs.formats.sessions import name_of
from saferank.logs.records import GOOD, SHAPE

CLICK = "click"
NO_QUERY = "(no query)"
"""The name of an empty user query: a page that was browsed to."""
_ACTIONS = ("index", "create", "update", "delete")


class UbiReader(JoiningReader):
    """Queries are pages, events are clicks."""

    def take_line(self, record: object, text: bytes) -> int:
        """A query, an event, or the action line before one."""
        if not isinstance(record, dict):
            return SHAPE
        if len(record) == 1 and next(iter(record)) in _ACTIONS:
            return GOOD
        document = record.get("_source", record)
        if not isinstance(document, dict):
            return SHAPE
        if "action_name" in document:
            return self._take_event(document)
        return self._take_query(document, text)

    def _take_query(self, document: Mapping[str, object], text: bytes) -> int:
        query = document.get("user_query")
        if not isinstance(query, str):
            return SHAPE
        hits = document.get("query_response_hit_ids") or document.get("query_response_object_ids") or []
        names = [name_of(hit) for hit in hits] if isinstance(hits, list) else [None]
        if None in names:
            return SHAPE
        key = name_of(document.get("query_id"))
        if names:
            self.show(key or object(), JoinedPage(query or NO_QUERY, list(names), [], text))
        return GOOD

    def _take_event(self, document: Mapping[str, object]) -> int:
        if document["action_name"] != CLICK:
            return GOOD
        attributes = document.get("event_attributes")
        clicked = attributes.get("object") if isinstance(attributes, dict) else None
        item = name_of(clicked.get("object_id")) if isinstance(clicked, dict) else None
        if item is None:
            return SHAPE
        self.waiting.append((name_of(document.get("query_id")) or "", item))
        return GOOD
