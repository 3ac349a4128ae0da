"""Spans of the two calls, and nothing of OpenTelemetry when they are off."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import cast

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from saferank.service.http.adapters.tracing import TracedServer, under_caller
from saferank.service.http.app import App
from saferank.service.server import Server
from saferank.service.wire.calls import FeedbackCall, RankCall
from tests.service.house import BASE, T, house, run
from tests.service.http.service_in_process import RANK, Service


def test_spans_have_the_arm_and_the_version_of_the_leader(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def check() -> None:
        async with house(tmp_path, mode="off") as made:
            server = TracedServer(made.server)
            server._tracer = provider.get_tracer("saferank")
            page = await server.rank(T, RankCall(context="c", base_ranking=BASE, k=3))
            clicks = [FeedbackCall(token=page.token, clicks=[]), FeedbackCall(token="bad.bad.bad", clicks=[])]
            await server.feedback(T, clicks)
            assert server.counters()["pages_total"] == 1  # everything else is the server's own

    run(check())
    rank, feedback = exporter.get_finished_spans()
    assert (rank.name, feedback.name) == ("saferank.rank", "saferank.feedback")
    assert rank.attributes is not None and feedback.attributes is not None
    assert (rank.attributes["saferank.arm"], rank.attributes["saferank.leader_version"]) == ("off", 1)
    assert (feedback.attributes["saferank.accepted"], feedback.attributes["saferank.refused"]) == (1, 1)
    assert isinstance(trace.get_tracer("saferank"), trace.Tracer)


def test_the_setting_wraps_the_server(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path, traces=True) as made:
            assert isinstance(App(made.server).server, TracedServer)

    run(check())


CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_span_is_a_child_of_the_span_of_the_caller() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = Service(traces=True)
    assert isinstance(service.app.server, TracedServer)
    service.app.server._tracer = provider.get_tracer("saferank")

    async def check() -> None:
        async with service.client() as client:
            for headers in ({"traceparent": CALLER}, {}, {"traceparent": "nonsense"}):
                report = {"token": "token:a,b", "clicks": ["a"]}
                for path, body in (("/v1/rank", RANK), ("/v1/feedback", report), ("/v1/beacon", report)):
                    assert (await client.post(path, json=body, headers=headers)).status_code == 200

    asyncio.run(check())
    spans = exporter.get_finished_spans()
    assert [span.name.removeprefix("saferank.") for span in spans] == ["rank", "feedback", "feedback"] * 3
    for span in spans[:3]:
        assert span.parent is not None and span.context is not None
        found = (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}", span.parent.is_remote)
        assert found == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
    assert all(span.parent is None for span in spans[3:])


def test_a_span_that_the_process_has_made_already_stays_the_parent() -> None:
    tracer = TracerProvider().get_tracer("framework")
    with tracer.start_as_current_span("request") as request, under_caller([(b"traceparent", CALLER.encode())]):
        assert trace.get_current_span() is request
    with under_caller([(b"traceparent", CALLER.encode())]):
        assert trace.get_current_span().get_span_context().span_id == 0xB7AD6B7169203331
    assert not trace.get_current_span().get_span_context().is_valid


def test_off_the_calls_are_answered_by_the_same_functions_as_without_traces() -> None:
    """Not one step more: neither the handlers nor the server nor the application are wrapped."""
    service = Service()
    assert service.app.server is cast(Server, service.server)
    assert service.app._under_caller is None
    assert Service(traces=True).app._under_caller is under_caller


def test_off_imports_nothing_of_ours() -> None:
    """Other packages of the service may import OpenTelemetry when it is there; our part of it is not touched."""
    code = "import saferank.service.http.process, sys; print('saferank.service.http.adapters.tracing' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
