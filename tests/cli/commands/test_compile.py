"""``saferank compile``: what it compiles, that a later process finds it, and what it says when it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saferank import _kernel
from saferank.click_models import CLICK_MODELS
from saferank.errors import RunError
from saferank.policies import POLICIES
from saferank.precompiling import jobs_for
from saferank.progress import Silent
from saferank.simulation.compiling import CompileJob, compile_ahead, worth_compiling
from tests.cli.command_line import SMALL, call, start


def test_every_purpose_has_its_jobs() -> None:
    assert {(job.policy, job.models, job.size > 0) for job in jobs_for("service")} == {("safe-draw", (), True)}
    paper = {job.policy: job.models for job in jobs_for("paper")}
    assert set(paper) >= {"kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original"}
    assert set(paper.values()) == {("pbm", "cm")}
    everything = {job.policy: job.models for job in jobs_for("all") if job.models}
    assert everything == dict.fromkeys(POLICIES, tuple(CLICK_MODELS))
    assert [job.policy for job in jobs_for("paper", ["top-rank"])] == ["top-rank"]


def test_what_was_compiled_is_found_by_the_next_process(tmp_path: Path) -> None:
    done = start("compile", "--for", "paper", "--policies", "original", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.code, done.out.partition(" in ")[0]) == (0, "compiled for paper")
    played = start("simulate", *SMALL, "--out", tmp_path / "run", NUMBA_CACHE_DIR=str(tmp_path))
    assert played.code == 0
    assert "compiling" not in played.err


def test_a_service_finds_all_that_was_compiled_for_it(tmp_path: Path) -> None:  # compiles all of it, on all cores
    assert [job.size for job in jobs_for("service")] == [3, 13]  # safe-draw has two plans
    around = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert start("compile", "--for", "service", NUMBA_CACHE_DIR=str(tmp_path)).code == 0
    script = (
        "from saferank import _kernel\n"
        "from saferank.service.knowledge.warm_up import warm_up\n"
        "_kernel.announce_compilation(lambda: print('compiles'))\n"
        "warm_up('safe-draw', 'anytime:1e-5')\n"
    )
    warm = subprocess.run([sys.executable, "-c", script], env=around, capture_output=True, text=True, check=True)
    assert warm.stdout == ""


def test_a_first_experiment_compiles_its_policies_at_once_and_a_second_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # without a guard around its call: no process may run it again
    script.write_text(
        "import saferank\n"
        "print('played')\n"
        "saferank.simulate(saferank.embedded_instances(1, models=('cm',)), ['original', 'cascade-kl-ucb'],\n"
        "                  rounds=10, repetitions=1, jobs=2)\n"
    )
    around = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, again = (
        subprocess.run([sys.executable, script], env=around, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == again.stdout == "played\n"
    assert "compiling 2 policies for this machine, once: original, cascade-kl-ucb" in first.stderr
    assert "compiling" not in again.stderr


def test_a_process_that_fails_is_quoted() -> None:
    with pytest.raises(RunError, match=r"^nobody pbm: not compiled: .*unknown policy 'nobody'"):
        compile_ahead([CompileJob("nobody", ("pbm",))], Silent(), 1)


def test_an_unknown_purpose_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "compile", "--for", "fun")
    assert (done.code, done.out) == (2, "")
    assert done.err == "saferank: error: --for: unknown purpose 'fun'; known ones: service, paper, all\n"


def test_an_unknown_policy_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "compile", "--policies", "nobody")
    assert done.code == 2
    assert done.err.startswith("saferank: error: --policies: unknown policy 'nobody'; known ones: ")


def test_interpreted_there_is_nothing_to_compile() -> None:
    done = start("compile", "--policies", "original", NUMBA_DISABLE_JIT="1")
    assert (done.code, done.err) == (1, "saferank: error: nothing is compiled while NUMBA_DISABLE_JIT is set\n")


@pytest.mark.filterwarnings("ignore:saferank compiles again in every process")
def test_a_cache_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    _kernel._cache_folder.cache_clear()
    try:
        done = call(capsys, "compile", "--for", "paper", "--policies", "original")
        wanted = worth_compiling(jobs_for("paper"), 2)
    finally:
        _kernel._cache_folder.cache_clear()
    assert wanted == []  # an experiment compiles what it needs where it plays, and does not fail
    assert done.code == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.err
