"""Pages that are found again by an event id, for callers that send nothing else with their clicks.

A report without clicks that has an event_id binds the id to its page (``report_digest``). The store keeps the binding
with the page, in one transaction.
"""

from typing import NamedTuple

from saferank.service import identifiers
from saferank.service.commands.propensities import first_place_chances
from saferank.service.protocol.server import Server, unavailable
from saferank.store.contract import StoreUnavailableError
from saferank.store.page_record import unpacked


class EventPage(NamedTuple):
    """The page that an event id was bound to."""

    impression_id: str
    context: str
    catalogue: bytes  # digest of the base ranking and the candidates of its call
    ranking: tuple[str, ...]
    first: tuple[float, ...]  # by place: the chance of its item to be first


async def event_page(server: Server, tenant: str, event_id: str) -> EventPage | None:
    """The page that the first report with this event_id was about, if that report had no clicks."""
    try:
        found = await server.store.delivery(tenant, event_id)
        row = None if found is None else server.writer.pages.get(found) or await server.store.page(found)
    except StoreUnavailableError as problem:
        raise unavailable(problem) from problem
    if row is None:
        return None
    record = unpacked(row.record)
    chances = tuple(first_place_chances(record)[: record.k])
    return EventPage(identifiers.to_text(record.impression), record.context, record.catalogue, record.shown, chances)
