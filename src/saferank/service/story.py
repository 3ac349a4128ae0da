"""The story of one page: what was known, what was shown and why, what was clicked, what became of it."""

import json
from collections.abc import Sequence
from typing import Literal

from saferank.service import identifiers
from saferank.service.arms import ARMS, SHADOW
from saferank.service.clock import moment
from saferank.service.context import Context
from saferank.service.export import items_of
from saferank.service.pages import Facts, leader_behind, shown_items, swaps_of, unpack
from saferank.service.recovery import find_catalogue
from saferank.service.state import Catalogue
from saferank.service.views import ImpressionView
from saferank.store.events import Event, Kind
from saferank.store.sqlite import Reader

_FOR_EVER = 2**62


def story(reader: Reader, context: Context, page: Event, clicks: Sequence[Event]) -> ImpressionView:
    """All about a page of the log."""
    assert page.impression is not None and page.body is not None
    facts, items = unpack(page.body), context.items
    shown = shown_items(facts, items)
    row = [items[number] for number in facts.numbers]
    issued_at = identifiers.issued_at(page.impression)
    row_of_closing = reader.row("first_closing", context.number, Kind.CLOSED, issued_at + facts.window_ms)
    closing = None if row_of_closing is None else Event(*row_of_closing)
    counted = facts.counted and not _rolled_back(reader, page, closing)
    base, candidates = catalogue_at(reader, page)
    bits = 0
    for event in clicks:
        bits |= int.from_bytes(event.body or b"", "little")
    state: Literal["open", "closed"] = "open" if closing is None else "closed"
    return ImpressionView(
        impression_id=identifiers.to_text(page.impression),
        context=context.name,
        arm=ARMS[facts.arm],
        counted=counted,
        state=state,
        issued_at=moment(issued_at),
        closes_at=moment(issued_at + facts.window_ms),
        closed_at=None if closing is None else moment(closing.at),
        round=facts.round,
        policy=context.opening.policy,
        rule=context.opening.rule,
        leader_version=facts.leader_version,
        leader=_leader(reader, context.number, facts, row),
        base_ranking=base,
        candidates=candidates,
        ranking=list(shown),
        would_have_shown=row[: facts.n_shown] if facts.arm == SHADOW and row else None,
        hidden=row[facts.n_shown :],
        groups=_groups(row, facts.group_ends),
        challenger=None if facts.challenger is None else row[facts.challenger],
        coins=facts.coins.hex(),
        request_id=facts.request_id,
        recovered=facts.recovered,
        clicks=items_of(shown, bits),
        explanation=_sentences(facts, counted, state, items_of(shown, bits)),
    )


def catalogue_at(reader: Reader, page: Event) -> Catalogue:
    """The base ranking and the candidates of its context when a page was issued."""
    latest = [_latest(reader, kind, page) for kind in (Kind.OPENED, Kind.CATALOGUE, Kind.ROLLBACK)]
    event = max(event for event in latest if event is not None)
    if event.kind == Kind.CATALOGUE:
        return find_catalogue(reader, event.body or b"")
    facts = json.loads(event.body or b"{}")
    if event.kind == Kind.ROLLBACK:
        return find_catalogue(reader, bytes.fromhex(facts["catalogue"]))
    return facts["base"], facts["candidates"]


def _latest(reader: Reader, kind: int, until: Event) -> Event | None:
    """The newest event of a kind in a context up to another event."""
    row = reader.row("latest_rare_event", until.context, kind, until.at, until.seq)
    return None if row is None else Event(*row)


def _rolled_back(reader: Reader, page: Event, closing: Event | None) -> bool:
    """True when a rollback came while the page was open."""
    newest = _latest(reader, Kind.ROLLBACK, closing or page._replace(seq=_FOR_EVER, at=_FOR_EVER))
    return newest is not None and newest.seq > page.seq


def _leader(reader: Reader, number: int, facts: Facts, row: list[str]) -> list[str]:
    """The leader at that moment. After a crash its version may have been given again: the page knows best."""
    if row:
        return list(leader_behind(row, facts.group_ends, facts.exchanged, facts.n_shown))
    written = reader.row("leader_of_version", number, facts.leader_version)
    leader: list[str] = [] if written is None else json.loads(written[5])
    return leader


def _groups(row: list[str], ends: tuple[int, ...]) -> list[list[str]]:
    return [row[start:end] for start, end in zip((0, *ends), ends, strict=False)]


def _sentences(facts: Facts, counted: bool, state: str, clicked: list[str]) -> str:
    swaps = swaps_of(facts.exchanged, facts.group_ends, facts.n_shown)
    arms = {
        "explore": f"The leader, version {facts.leader_version}, with {swaps} pairs of neighbours exchanged.",
        "holdout": "Production's ranking, for comparison: the session is in the holdout share.",
        "off": "Production's ranking: the service was switched off, or could not check or write a page.",
        "shadow": "Production's ranking; what the learner would have shown is noted.",
        "frozen": "Production's ranking: certificates contradicted each other.",
        "repeat": "A further page for a session whose counted page was still open, so it is not counted.",
    }
    clicks = f"Clicked: {', '.join(clicked)}." if clicked else "No clicks."
    if not counted:
        fate = "Nothing is learnt from it."
    elif not clicked:
        fate = "A page without clicks changes nothing."
    else:
        fate = "Its clicks count when its window closes." if state == "open" else "Its clicks were learnt."
    return f"{arms[ARMS[facts.arm]]} {clicks} {fate}"
