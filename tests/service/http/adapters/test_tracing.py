"""Spans of the two calls, and nothing of OpenTelemetry when they are off."""

import subprocess
import sys
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from saferank.service.http.adapters.tracing import TracedEngine
from saferank.service.http.app import make_app
from saferank.service.http.hub import Hub
from saferank.service.wire.calls import FeedbackCall, RankCall
from tests.service.engine_harness import BASE, T, house, run


def test_spans_have_the_arm_and_the_version_of_the_leader(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def check() -> None:
        async with house(tmp_path, mode="off") as made:
            engine = TracedEngine(made.engine)
            engine._tracer = provider.get_tracer("saferank")
            page = await engine.rank(T, RankCall(context="c", base_ranking=BASE, k=3))
            clicks = [FeedbackCall(token=page.token, clicks=[]), FeedbackCall(token="bad.bad.bad", clicks=[])]
            await engine.feedback(T, clicks)
            assert engine.counters()["pages_total"] == 1  # everything else is the engine's own

    run(check())
    rank, feedback = exporter.get_finished_spans()
    assert (rank.name, feedback.name) == ("saferank.rank", "saferank.feedback")
    assert rank.attributes is not None and feedback.attributes is not None
    assert (rank.attributes["saferank.arm"], rank.attributes["saferank.leader_version"]) == ("off", 1)
    assert (feedback.attributes["saferank.accepted"], feedback.attributes["saferank.refused"]) == (1, 1)
    assert isinstance(trace.get_tracer("saferank"), trace.Tracer)


def test_the_setting_wraps_the_engine(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path, traces=True) as made:
            assert isinstance(Hub(made.settings, made.engine).engine, TracedEngine)
            assert make_app(Hub(made.settings, made.engine)) is not None

    run(check())


def test_off_imports_nothing_of_ours() -> None:
    """Other packages of the service may import OpenTelemetry when it is there; our part of it is not touched."""
    code = "import saferank.service.http.server, sys; print('saferank.service.http.adapters.tracing' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
