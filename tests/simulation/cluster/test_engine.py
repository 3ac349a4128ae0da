"""A real Dask cluster on this machine: the same results, also when a worker is killed."""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from saferank.experiments.simulate import simulate as simulate_by_name
from saferank.instances.embedded import embedded_instances
from saferank.plugins import load_plugins
from saferank.policies import POLICIES
from saferank.simulation.cluster import Cluster, ClusterError, connected
from saferank.simulation.cluster import engine as module
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Plan, cells_of
from tests.cli.command_line import call, environment

SECONDS = 120
"""After so long a test gives up waiting."""

LOCAL = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
WORKER = (*LOCAL[:2], "--nthreads", "2", "--no-dashboard", "--no-nanny", "--memory-limit", "0")
CELLS = cells_of(
    embedded_instances(2, models=("pbm",)), Plan(("bubble-rank", "kl-ucb-br"), 5, 20_000, 24, rule="paper:1e-4")
)


class Process:
    """A command of Dask; what it says is read all the time, so that it never waits for a reader."""

    def __init__(self, *arguments: str, folder: Path, **changes: str) -> None:
        command = [sys.executable, "-m", "dask", *arguments]
        self.running = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment(**changes), start_new_session=True
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.running.stderr is not None
        with self.running.stderr as lines:
            self.lines.extend(lines)

    def said(self, pattern: str) -> str:
        """The first part of a line that matches, once it is there."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found.group(1)
            assert self.running.poll() is None, "".join(self.lines)
            time.sleep(0.02)
        raise AssertionError(f"{pattern} is not in {''.join(self.lines)}")

    def end(self) -> None:
        self.running.send_signal(signal.SIGKILL)
        self.running.wait(SECONDS)
        self.reader.join(SECONDS)


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a scheduler without workers."""
    process = Process("scheduler", *LOCAL, folder=folder)
    try:
        yield process.said(r"Scheduler at:\s+(tcp://\S+)")
    finally:
        process.end()


@contextmanager
def two_workers(address: str, folder: Path) -> Iterator[list[Process]]:
    """Two workers, ready."""
    made = [Process("worker", address, *WORKER, folder=folder) for _ in range(2)]
    try:
        for worker in made:
            worker.said(r"(Registered to)")
        yield made
    finally:
        for worker in made:
            worker.end()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two workers that are left alone."""
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler(folder) as address, two_workers(address, folder):
        yield address


@pytest.fixture(scope="module")
def deserted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler without workers."""
    with scheduler(tmp_path_factory.mktemp("scheduler")) as address:
        yield address


@pytest.fixture
def workers(deserted: str, tmp_path: Path) -> Iterator[list[Process]]:
    """Two workers of it, to be killed."""
    with two_workers(deserted, tmp_path) as made:
        yield made


def test_the_cluster_gives_the_results_of_threads(address: str) -> None:
    heard: list[int] = []
    with connected(address) as engine:
        found = simulate(CELLS, on_rounds=heard.append, engine=engine)
    assert found == simulate(CELLS, jobs=2)
    assert sum(heard) == len(CELLS) * 24 * 20_000


def test_a_worker_that_is_killed_is_survived(
    deserted: str, workers: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "task_rounds", 20_000)  # many small tasks: some are with the worker when it dies
    heard: list[int] = []

    def kill_one(rounds: int) -> None:
        heard.append(rounds)
        if len(heard) == 10:
            workers[0].end()

    with connected(deserted) as engine:
        found = simulate(CELLS, on_rounds=kill_one, engine=engine)
    assert workers[0].running.returncode == -signal.SIGKILL
    assert found == simulate(CELLS, jobs=2)
    assert len(heard) == len(CELLS) * 24


def test_a_plug_in_is_played_by_workers_that_never_heard_of_it(address: str, tmp_path: Path) -> None:
    from tests.test_plugins import PLUGIN

    (tmp_path / "travelling_policy.py").write_text(PLUGIN)
    try:
        load_plugins([str(tmp_path / "travelling_policy.py")])
        options: Any = {"positions": 5, "rounds": 50, "repetitions": 3, "progress": False}
        instances = embedded_instances(2, models=("cm",))[:1]
        there = simulate_by_name(instances, "backwards", **options, cluster=address)
        here = simulate_by_name(instances, "backwards", **options, jobs=1)
    finally:
        del POLICIES["backwards"], sys.modules["travelling_policy"]
    assert there.curves == here.curves
    assert there.provenance["plugins"] == here.provenance["plugins"]
    assert list(there.provenance["plugins"]) == ["travelling_policy"]


OPTIONS = (
    "--queries", 2, "--rounds", 2000, "--repetitions", 3, "--sessions", 4000, "--iterations", 5, "--models", "pbm",
    "--policies", "bubble-rank,original",
)  # fmt: skip


def test_the_commands_take_a_cluster(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saferank.reproduction.reproduce._reported", lambda folder, shown: None)
    files: dict[str, list[str]] = {}
    for name, *engine in (("here", "--jobs", 2), ("there", "--cluster", address)):
        code, _, err = call(capsys, "reproduce", *OPTIONS, *engine, "--out", tmp_path / name)
        assert code == 0, err
        texts = [(tmp_path / name / f"{part}.json").read_text() for part in ("results", "sensitivity", "study")]
        files[name] = [text.partition('"results": [')[2] for text in texts]
    assert files["here"] == files["there"]
    small = ("--queries", 1, "--models", "cm", "--rounds", 500, "--repetitions", 2, "--out", tmp_path / "simulated")
    assert call(capsys, "simulate", *small, "--cluster", address).code == 0


def test_an_address_that_does_not_answer_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    out = tmp_path / "out"
    code, _, err = call(capsys, "reproduce", *OPTIONS, "--cluster", "tcp://127.0.0.1:1", "--out", out)
    assert code == 1
    assert "--cluster: no Dask scheduler answers at tcp://127.0.0.1:1; start one with `dask scheduler`" in err
    assert not out.exists()


@pytest.mark.parametrize("address", ["nonsense", "http://", "tcp://127.0.0.1", "127.0.0.1:", "a b:1"])
def test_something_that_is_no_address_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    code, _, err = call(capsys, "reproduce", *OPTIONS, "--cluster", address, "--out", tmp_path)
    assert code == 2
    assert f"--cluster: found '{address}', expected the address of a Dask scheduler, like tcp://127.0.0.1:8786" in err


def test_a_cluster_without_workers_is_an_error(deserted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 2.0)
    with pytest.raises(ClusterError, match="has no worker; start one with `dask worker"), connected(deserted):
        pass


def test_workers_with_another_saferank_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.simulation.cluster.worker.__version__", "9.9.9")
    expected = r"worker tcp://.* runs saferank 0\S* \(source \w{8}\), here is saferank 9.9.9 \(source \w{8}\)"
    with pytest.raises(ClusterError, match=expected), connected(address):
        pass


def test_a_worker_that_joins_later_with_another_saferank_is_noticed(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(address) as engine:
        monkeypatch.setattr("saferank.simulation.cluster.worker.__version__", "9.9.9")
        with pytest.raises(ClusterError, match=r"a worker runs saferank .*, here is saferank 9.9.9"):
            simulate(CELLS[:1], engine=engine)


def test_when_all_workers_are_gone_it_does_not_wait_for_ever(
    deserted: str, workers: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "task_rounds", 20_000)
    monkeypatch.setattr(module, "WORKER_SECONDS", 1.0)

    def kill_all(rounds: int) -> None:
        for worker in workers:
            worker.end()

    with pytest.raises(ClusterError, match="has had no worker for 1 s"), connected(deserted) as engine:
        simulate(CELLS, on_rounds=kill_all, engine=engine)


def test_a_scheduler_that_goes_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "task_rounds", 20_000)
    processes: list[Any] = [Process("scheduler", *LOCAL, folder=tmp_path)]
    try:
        address = processes[0].said(r"Scheduler at:\s+(tcp://\S+)")
        processes.append(Process("worker", address, *WORKER, folder=tmp_path))
        processes[1].said(r"(Registered to)")
        with pytest.raises(ClusterError, match="lost the scheduler at"), connected(address) as engine:
            simulate(CELLS, on_rounds=lambda rounds: processes[0].end(), engine=engine)
    finally:
        for process in processes:
            process.end()
