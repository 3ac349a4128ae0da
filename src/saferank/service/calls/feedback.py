"""The feedback call: clicks of open pages are a growing set; an answer is given when they are durable."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from saferank.service import identifiers
from saferank.service.calls.rank import open_context, page_row
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, moment
from saferank.service.wire.problems import Problem
from saferank.store.contract import ClickReport, Outcome, PageRow
from saferank.store.page_record import PageRecord, read_record
from saferank.store.record_columns import unpacked

if TYPE_CHECKING:
    from saferank.service.server import Server


Subject = tuple[PageRecord, PageRow | None, bytes]
"""The page of a report, its row, and its packed record if it comes from a token: then there may be no row."""


async def feedback(server: "Server", tenant: str, calls: Sequence[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
    """Take all reports in, then wait for the store once."""
    taken = [await _attempt(server, tenant, call) for call in calls]
    reports = [entry for entry in taken if isinstance(entry, ClickReport)]
    outcomes, now = await server.writer.report(reports) if reports else ((), 0)
    found = iter(outcomes)
    return [_answer(server, entry, next(found), now) if isinstance(entry, ClickReport) else entry for entry in taken]


async def _attempt(server: "Server", tenant: str, call: FeedbackCall) -> ClickReport | Problem:
    try:
        return await _report(server, tenant, call)
    except Problem as problem:
        return _refused(server, tenant, problem)


def _refused(server: "Server", tenant: str, problem: Problem) -> Problem:
    """Count a refusal by its reason."""
    server.counts["feedback_refused_total"] += 1
    server.refusals[tenant][problem.title.lower()] += 1
    return problem


async def _report(server: "Server", tenant: str, call: FeedbackCall) -> ClickReport:
    record, row, body = await _subject(server, tenant, call)
    _check_shown(server, record, call)
    bits = clicked_bits(record.shown, call.clicks)
    row = row or await _row(server, record, body)
    return ClickReport(row._replace(clicks=bits), tenant, call.event_id)


def _check_shown(server: "Server", record: PageRecord, call: FeedbackCall) -> None:
    """Clicks on another page than the one that was drawn prove nothing: items were filtered or moved after it."""
    if call.shown is not None and tuple(call.shown) != record.shown:
        server.counts["feedback_not_as_shown_total"] += 1
        detail = f"the page was {list(record.shown)}; show it as it was answered, or ask for another"
        raise Problem(422, "Other page", detail, "shown")


def _answer(server: "Server", report: ClickReport, outcome: Outcome, now: int) -> FeedbackAnswer | Problem:
    counts, late = server.counts, outcome == Outcome.LATE
    if outcome == Outcome.CONFLICT:
        detail = f"event_id {report.event_id!r} came before with other clicks on this page; give new events new ids"
        return _refused(server, report.tenant, Problem(409, "Other body", detail, "event_id"))
    counts[f"feedback_{outcome.name.lower()}_total"] += 1
    server.reports[report.tenant][outcome.name.lower()] += 1
    closes_at = report.page.closes_at
    state: Literal["open", "closed"] = "closed" if late or closes_at <= now else "open"
    return FeedbackAnswer(
        accepted=not late,
        duplicate=outcome == Outcome.DUPLICATE,
        late=late,
        state=state,
        closes_at=moment(closes_at),
    )


# --- which page ---


async def _subject(server: "Server", tenant: str, call: FeedbackCall) -> Subject:
    if call.token is None:
        assert call.impression_id is not None
        return await _by_id(server, tenant, call.impression_id)
    record, body = server.tokens.open(call.token)
    if record.tenant != tenant:
        raise Problem(403, "Wrong tenant", "the token is of a page of another tenant", "token")
    return record, server.writer.pages.get(record.impression), body


async def _by_id(server: "Server", tenant: str, text: str) -> Subject:
    impression, row, record = identifiers.impression_id(text), None, None
    if impression is not None and (row := server.writer.pages.get(impression)):
        record = read_record(row.record)  # it was packed here
    elif impression is not None and (row := await server.store.page(impression)):
        record = unpacked(row.record)
    if record is None or record.tenant != tenant:
        raise Problem(404, "Unknown impression", f"there is no impression {text}", "impression_id")
    return record, row, b""


async def _row(server: "Server", record: PageRecord, body: bytes) -> PageRow:
    """The row of a page that comes back by its token; its context is opened if that was not possible before."""
    context = server.contexts.loaded(record.tenant, record.context)
    if context is None:
        context = await server.contexts.find(record.tenant, record.context)
    if context is None:
        lists = (list(record.production), [item for item in record.row if item not in record.production])
        context = await open_context(server, record.tenant, record.context, record.k, lists)
    return page_row(record, context.number, body)


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
