"""Spans of the two calls for OpenTelemetry. Only imported when the setting ``traces`` is on.

Their parent is the span of the caller, from the header ``traceparent`` (W3C), or from whatever header the propagators
of the process read (``OTEL_PROPAGATORS``).

The service makes spans; where they go is the business of the OpenTelemetry SDK of the process, for instance by
``opentelemetry-instrument saferank serve --set traces=true``. Without an SDK they are made and dropped.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from msgspec import structs
from opentelemetry import context, propagate, trace

from saferank.service.server import Server
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.wire.problems import Problem


class TracedServer:
    """The two calls, with a span around each; everything else is the server's."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._tracer = trace.get_tracer("saferank")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show. The arm is in its explanation, so that is asked for."""
        with self._tracer.start_as_current_span("saferank.rank") as span:
            answer = await self._server.rank(tenant, structs.replace(call, explain=True))
            span.set_attributes(_facts_of_page(tenant, call, answer))
            return answer

    async def feedback(self, tenant: str, calls: list[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
        """Record clicks; the span ends when they are on disk."""
        with self._tracer.start_as_current_span("saferank.feedback") as span:
            results = await self._server.feedback(tenant, calls)
            span.set_attributes({"saferank.tenant": tenant, "saferank.reports": len(calls), **_outcomes(results)})
            return results


def _facts_of_page(tenant: str, call: RankCall, answer: RankAnswer) -> dict[str, str | int]:
    return {
        "saferank.tenant": tenant,
        "saferank.context": call.context,
        "saferank.k": call.k,
        "saferank.impression_id": answer.impression_id,
        "saferank.leader_version": answer.leader_version,
        "saferank.mode": answer.mode,
        "saferank.arm": answer.explanation.arm if answer.explanation else "",
    }


def _outcomes(results: list[FeedbackAnswer | Problem]) -> dict[str, int]:
    answers = [result for result in results if isinstance(result, FeedbackAnswer)]
    return {
        "saferank.accepted": sum(answer.accepted for answer in answers),
        "saferank.late": sum(answer.late for answer in answers),
        "saferank.refused": len(results) - len(answers),
    }


@contextmanager
def under_caller(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
    """Spans that are made inside are children of the caller's span, unless the process has made a span already."""
    if trace.get_current_span().get_span_context().is_valid:  # of an instrumentation of the web framework
        yield
        return
    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    before = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(before)


def traced(server: Server) -> Server:
    """The server, with spans of its two calls."""
    return cast(Server, TracedServer(server))
