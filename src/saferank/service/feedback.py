"""The feedback call: clicks of open pages are a growing set; an answer is given when they are on disk."""

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

from saferank.service import identifiers
from saferank.service.calls import FeedbackAnswer, FeedbackCall
from saferank.service.clock import moment
from saferank.service.core import Core
from saferank.service.pages import OpenPage, shown_items, unpack
from saferank.service.problems import Problem
from saferank.service.recreation import recreate
from saferank.service.tokens import Claim
from saferank.store.events import Delivery, Event, Kind


class Subject(NamedTuple):
    """The page that a report is about."""

    impression: bytes
    shown: tuple[str, ...]
    closes_at: int
    page: OpenPage | None  # while it is open and known
    claim: Claim | None  # when the report came with a token


class Outcome(NamedTuple):
    """The answer, and the event that must be on disk before it is given."""

    answer: FeedbackAnswer
    seq: int


class Feedback:
    """Answers feedback calls."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def feedback(self, tenant: str, calls: Sequence[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Take all reports in, then wait for the disk once."""
        core = self._core
        if core.overloaded:
            raise core.journal.not_written() if core.journal.failing else self._too_many()
        now = core.now()
        outcomes = [self._attempt(tenant, call, now) for call in calls]
        await core.journal.until(max((entry.seq for entry in outcomes if isinstance(entry, Outcome)), default=0))
        return [self._counted(entry) for entry in outcomes]

    def _too_many(self) -> Problem:
        detail = f"{self._core.journal.pending} events wait for the disk; try again in a second"
        return Problem(503, "Too many writes", detail, retry_after=1)

    def _attempt(self, tenant: str, call: FeedbackCall, now: int) -> Outcome | Problem:
        try:
            return self._take(tenant, call, now)
        except Problem as problem:
            return problem

    def _counted(self, entry: Outcome | Problem) -> FeedbackAnswer | Problem:
        if isinstance(entry, Problem):
            return entry
        answer, counts = entry.answer, self._core.counts
        counts["feedback_accepted_total"] += answer.accepted and not answer.duplicate
        counts["feedback_duplicate_total"] += answer.duplicate
        counts["feedback_late_total"] += answer.late
        return answer

    def _take(self, tenant: str, call: FeedbackCall, now: int) -> Outcome:
        subject = self._subject(tenant, call)
        bits = clicked_bits(subject.shown, call.clicks)
        digest = _digest(subject.impression, bits)
        if call.event_id is not None:
            known = self._delivery(tenant, call.event_id)
            if known is not None:
                return self._repeated(subject, call.event_id, digest, known, now)
        if subject.closes_at <= now:
            return Outcome(_answer(subject, now, accepted=False, late=True), 0)
        page = subject.page
        if page is None:
            assert subject.claim is not None  # without a token an unknown page is a closed one
            page = recreate(self._core, subject.claim, now)
        if call.event_id is None and page.last_click_seq and bits | page.clicks == page.clicks:
            return Outcome(_answer(subject, now, duplicate=True), page.last_click_seq)
        return Outcome(_answer(subject, now), self._write(page, bits, tenant, call.event_id, digest, now))

    def _write(self, page: OpenPage, bits: int, tenant: str, event_id: str | None, digest: bytes, now: int) -> int:
        core = self._core
        body = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        event = core.write(Kind.CLICKS, page.context.number, now, page.id, body)
        core.state.clicks(event)
        if event_id is not None:
            core.deliveries[tenant, event_id] = (digest, event.seq)
            core.journal.batch.deliveries.append(Delivery(tenant, event_id, digest, event.seq))
        return event.seq

    # --- event ids ---

    def _delivery(self, tenant: str, event_id: str) -> tuple[bytes, int] | None:
        waiting = self._core.deliveries.get((tenant, event_id))
        if waiting is not None:
            return waiting
        row = self._core.reader.row("delivery", tenant, event_id)
        return None if row is None else (row[0], row[1])

    def _repeated(self, subject: Subject, event_id: str, digest: bytes, known: tuple[bytes, int], now: int) -> Outcome:
        if known[0] != digest:
            detail = f"event_id {event_id!r} came before with another page or other clicks; give a new event a new id"
            raise Problem(409, "Other body", detail, "event_id")
        return Outcome(_answer(subject, now, duplicate=True), known[1])

    # --- which page ---

    def _subject(self, tenant: str, call: FeedbackCall) -> Subject:
        if call.token is not None:
            return self._by_token(tenant, call.token)
        assert call.impression_id is not None
        return self._by_id(tenant, call.impression_id)

    def _by_token(self, tenant: str, token: str) -> Subject:
        claim = self._core.tokens.read(token)
        if claim.tenant != tenant:
            raise Problem(403, "Wrong tenant", "the token is of a page of another tenant", "token")
        page = self._core.state.open_pages.get(claim.impression)
        return Subject(claim.impression, claim.shown, claim.closes_at, page, claim)

    def _by_id(self, tenant: str, text: str) -> Subject:
        impression = identifiers.impression_id(text)
        page = None if impression is None else self._core.state.open_pages.get(impression)
        if page is not None and page.context.tenant == tenant:
            return Subject(page.id, page.shown(), page.closes_at, page, None)
        event = None if impression is None or page is not None else self._closed_page(impression)
        context = None if event is None else self._core.state.contexts.get(event.context)
        if event is None or context is None or context.tenant != tenant:
            raise Problem(404, "Unknown impression", f"there is no impression {text}", "impression_id")
        assert event.impression is not None and event.body is not None
        facts = unpack(event.body)
        closes_at = identifiers.issued_at(event.impression) + facts.window_ms
        return Subject(event.impression, shown_items(facts, context.items), closes_at, None, None)

    def _closed_page(self, impression: bytes) -> Event | None:
        row = self._core.reader.row("page", impression)
        if row is not None:
            return Event(*row)
        return self._core.journal.waiting_page(impression, identifiers.issued_at(impression))


def clicked_bits(shown: Sequence[str], clicks: Sequence[str]) -> int:
    """A bit for each place that was clicked; Problem 422 for anything else than a set of shown items."""
    bits = 0
    for number, item in enumerate(clicks):
        if item not in shown:
            raise Problem(422, "Item not shown", f"item {item!r} was not shown on this page", f"clicks[{number}]")
        bit = 1 << shown.index(item)
        if bits & bit:
            raise Problem(422, "Item twice", f"item {item!r} is in the list twice; keep one", f"clicks[{number}]")
        bits |= bit
    return bits


def _digest(impression: bytes, bits: int) -> bytes:
    """What two reports with the same event_id must have in common."""
    return hashlib.blake2b(impression + bits.to_bytes(16, "little"), digest_size=16).digest()


def _answer(
    subject: Subject, now: int, *, accepted: bool = True, duplicate: bool = False, late: bool = False
) -> FeedbackAnswer:
    state: Literal["open", "closed"] = "closed" if subject.closes_at <= now else "open"
    return FeedbackAnswer(
        accepted=accepted, duplicate=duplicate, late=late, state=state, closes_at=moment(subject.closes_at)
    )
