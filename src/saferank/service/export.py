"""Events of the log as JSON, for export."""

import json
from typing import Any

from saferank.service import identifiers
from saferank.service.arms import ARMS
from saferank.service.clock import moment
from saferank.service.context import Context
from saferank.service.pages import Facts, shown_items, unpack
from saferank.service.recovery import find_catalogue
from saferank.store.events import Event, Kind
from saferank.store.sqlite import Reader


def to_line(facts: dict[str, Any]) -> str:
    """One line of an export."""
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def describe(event: Event, context: Context | None, reader: Reader) -> dict[str, Any] | None:
    """An event in words; None for one of a context that is not known any more. ``tenant`` says whose it is."""
    facts: dict[str, Any] = {"seq": event.seq, "kind": Kind(event.kind).name.lower(), "at": moment(event.at)}
    if context is None:
        return {**facts, **json.loads(event.body or b"{}")} if event.context == 0 else None
    facts |= {"tenant": context.tenant, "context": context.name}
    if event.impression is not None:
        facts["impression_id"] = identifiers.to_text(event.impression)
    if event.kind == Kind.PAGE:
        return facts | _page(unpack(event.body or b""), context, event.impression or b"")
    if event.kind == Kind.CLICKS:
        return facts | {"clicks": _clicked(event, context, reader)}
    if event.kind == Kind.CATALOGUE:
        base, candidates = find_catalogue(reader, event.body or b"")
        return facts | {"base_ranking": base, "candidates": candidates}
    facts.update(json.loads(event.body or b"{}"))
    return facts


def _page(facts: Facts, context: Context, impression: bytes) -> dict[str, Any]:
    items = context.items
    return {
        "arm": ARMS[facts.arm],
        "counted": facts.counted,
        "recovered": facts.recovered,
        "issued_at": moment(identifiers.issued_at(impression)),
        "closes_at": moment(identifiers.issued_at(impression) + facts.window_ms),
        "round": facts.round,
        "leader_version": facts.leader_version,
        "ranking": list(shown_items(facts, items)),
        "row": [items[number] for number in facts.numbers],
        "group_ends": list(facts.group_ends),
        "session": facts.session.hex() or None,
        "coins": facts.coins.hex(),
        "request_id": facts.request_id,
    }


def _clicked(event: Event, context: Context, reader: Reader) -> list[str]:
    row = reader.row("page", event.impression)
    if row is None:
        return []
    shown = shown_items(unpack(Event(*row).body or b""), context.items)
    return items_of(shown, int.from_bytes(event.body or b"", "little"))


def items_of(shown: tuple[str, ...], bits: int) -> list[str]:
    """The items whose bits are set."""
    return [item for place, item in enumerate(shown) if bits >> place & 1]
