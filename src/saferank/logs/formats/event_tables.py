"""Logs in which pages and clicks are separate lines, joined in memory; among them ga4 and segment.

A click finds its page by a key (the id of a query, or a user): the newest page of the key that shows the item. All
pages of the file are in memory while it is read, about 1 KB for a page of ten items, because a click may come last.

ga4 and segment: e-commerce events as JSON, one a line, read by a table that says where each fact stands.

A list that was viewed is a page; a click belongs to the newest page of its user that shows the item, of the same list
if the event names one. Lines are expected in the order of time. Other events are skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saferank.logs.formats.byte_chunks import CHUNK, Progress
from saferank.logs.formats.sessions import SessionsReader, name_of, note_line
from saferank.logs.records import GOOD, SHAPE
from saferank.logs.tables.batch import ReaderCounts


class JoinedPage(NamedTuple):
    """A page, its clicks so far, and the line that it stands on."""

    query: object
    items: list[object]
    clicked: list[object]
    text: bytes


class JoiningReader(SessionsReader):
    """A log of separate pages and clicks, joined by keys; what a line means is the business of ``take_line``."""

    def take_line(self, record: object, text: bytes) -> int:
        """Take in the JSON value of a line; returns what is wrong with it."""
        raise NotImplementedError

    def show(self, key: object, page: JoinedPage) -> None:
        """A page was shown."""
        self._joined.append(page)
        self._by_key.setdefault(key, []).append(page)

    def click(self, key: object, item: object, query: object = None) -> None:
        """An item of a page was clicked; ``query`` narrows down which. A click without its page is stray."""
        for page in reversed(self._by_key.get(key, ())):
            if item in page.items and query in (None, page.query):
                page.clicked.append(item)
                return
        self.tally.stray_clicks[0] += 1

    def pages(self, tally: ReaderCounts, progress: Progress) -> Iterator[tuple[bytes, object]]:
        """The pages, in the order of the file, with the clicks that came to them."""
        self._joined: list[JoinedPage] = []
        self._by_key: dict[object, list[JoinedPage]] = {}
        self.waiting: list[tuple[object, object]] = []  # clicks that may stand before their pages: keys and items
        for text, record in super().pages(tally, progress):
            note_line(tally, self.take_line(record, text), text)
        for key, item in self.waiting:
            self.click(key, item)
        for page in self._joined:
            yield page.text, {"query": page.query, "items": page.items, "clicked": list(dict.fromkeys(page.clicked))}


Places = Sequence[str]
"""Where a fact may stand, the first that has it wins; points lead into objects."""


class EventTable(NamedTuple):
    """Where a kind of events has its facts."""

    event: Places
    shown: str  # the event of a list that was viewed
    clicked: str  # the event of an item that was clicked
    user: Places
    query: Places  # the list
    items: Places  # the items of a list, or of a click
    item: Places  # within an item
    position: Places  # within an item


GA4 = EventTable(
    event=("event_name", "name", "event"),
    shown="view_item_list",
    clicked="select_item",
    user=("user_pseudo_id", "client_id", "user_id"),
    query=(
        "event_params.item_list_id", "event_params.item_list_name",
        "params.item_list_id", "params.item_list_name",
        "ecommerce.item_list_id", "ecommerce.item_list_name",
        "items.item_list_id", "items.item_list_name",
    ),
    items=("items", "params.items", "ecommerce.items"),
    item=("item_id", "item_name"),
    position=("item_list_index", "index"),
)  # fmt: skip
SEGMENT = EventTable(
    event=("event",),
    shown="Product List Viewed",
    clicked="Product Clicked",
    user=("userId", "anonymousId"),
    query=("properties.list_id", "properties.category"),
    items=("properties.products", "properties"),
    item=("product_id", "sku"),
    position=("position",),
)


class TableReader(JoiningReader):
    """Events of one table."""

    def __init__(self, table: EventTable, path: Path, chunk: int = CHUNK) -> None:
        super().__init__(path, chunk)
        self._table = table

    def take_line(self, record: object, text: bytes) -> int:
        """A list that was viewed, a click, or something else."""
        if not isinstance(record, dict):
            return SHAPE
        table = self._table
        event = _first(record, table.event)
        if event == table.shown:
            return self._take_list(record, text)
        return self._take_click(record) if event == table.clicked else GOOD

    def _take_list(self, record: Mapping[str, Any], text: bytes) -> int:
        query, items = name_of(_first(record, self._table.query)), self._items(record)
        if query is None or not items:
            return SHAPE
        self.show(self._user(record), JoinedPage(query, list(items), [], text))
        return GOOD

    def _take_click(self, record: Mapping[str, Any]) -> int:
        items = self._items(record)
        if not items:
            return SHAPE
        query = name_of(_first(record, self._table.query))
        for item in items:
            self.click(self._user(record), item, query)
        return GOOD

    def _user(self, record: Mapping[str, Any]) -> str | None:
        return name_of(_first(record, self._table.user))

    def _items(self, record: Mapping[str, Any]) -> list[str] | None:
        """The names of the items by their positions, if all have one; None if an item has no name."""
        found = _first(record, self._table.items)
        entries = found if isinstance(found, list) else [found]
        names = [name_of(_first(entry, self._table.item)) for entry in entries]
        positions = [_first(entry, self._table.position) for entry in entries]
        named = [name for name in names if name is not None]
        if len(named) < len(names):
            return None
        if all(isinstance(position, int) for position in positions):
            named = [named[place] for place in sorted(range(len(named)), key=lambda place: positions[place])]
        return named


def _first(record: object, places: Places) -> Any:
    """The fact at the first place that has one."""
    for place in places:
        found = record
        for part in place.split("."):
            found = _entry(found, part)
        if found is not None:
            return found
    return None


def _entry(value: object, name: str) -> Any:
    """An entry of an object, of a list of keys and values (BigQuery's parameters), or of the first of a list."""
    if isinstance(value, dict):
        return value.get(name)
    if not isinstance(value, list):
        return None
    for entry in value:
        if isinstance(entry, dict) and entry.get("key") == name and isinstance(entry.get("value"), dict):
            return next((found for found in entry["value"].values() if found is not None), None)
    return value[0].get(name) if value and isinstance(value[0], dict) else None
