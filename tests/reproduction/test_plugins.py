"""A plug-in is taken by ``reproduce`` from Python as it is from the command line, and compiled where it is known."""

from dataclasses import replace
from pathlib import Path

import polars
import pytest

from saferank import embedded_instances, reproduce
from saferank.errors import ArgumentError
from saferank.policies import POLICIES
from saferank.simulation.compiling import jobs_of
from saferank.simulation.experiment import Plan, cells_of

PLUGIN = """
from saferank.policies import POLICIES, register

def start(setup):
    return POLICIES["original"].start(setup)

register("still", POLICIES["original"].policy, start=start, leader=POLICIES["original"].leader)
"""


def test_a_plug_in_that_is_not_there_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"plugin: .*gone\.py: there is no such file"):
        reproduce(tmp_path / "out", plugins=[str(tmp_path / "gone.py")], progress=False)
    assert not (tmp_path / "out").exists()


def test_policies_that_only_this_process_knows_are_not_compiled_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.simulation.compiling.is_kept", lambda part: False)
    known = POLICIES["original"]
    plan = Plan((known, replace(known, name="twin"), "bubble-rank"), 5, 10, 1)
    assert [job.policy for job in jobs_of(cells_of(embedded_instances(2, models=("cm",)), plan))] == [
        "original", "bubble-rank",
    ]  # fmt: skip


@pytest.mark.check  # writes a log, fits it and compiles a loop
def test_a_policy_of_a_plug_in_is_reproduced_from_python(tmp_path: Path) -> None:
    (tmp_path / "still_policy.py").write_text(PLUGIN)
    made = reproduce(
        tmp_path / "out", plugins=[str(tmp_path / "still_policy.py")], policies=["original", "still"], models=["cm"],
        queries=2, rounds=100, repetitions=2, sessions=2000, iterations=5, without=["sensitivity", "study"], jobs=1,
        report=False, progress=False,
    )  # fmt: skip
    assert made.results.policies == ["original", "still"]
    fit = made.results.provenance["reproduction"]["fit"]["cm"]
    assert fit["perplexity"] is None and fit["impossible"] > 0.1  # the planted users click several times
    assert 0 < fit["attraction_error"] < 0.2


@pytest.mark.check  # fits a log and compiles a loop
def test_sessions_of_a_frame_are_reproduced(tmp_path: Path) -> None:
    items = [f"i{n}" for n in range(10)]
    pages = [{"query": f"q{n % 2}", "items": items, "clicked": items[n % 5 : n % 5 + 1]} for n in range(200)]
    made = reproduce(
        tmp_path, log=polars.DataFrame(pages), policies=["original"], models=["cm"], queries=2, rounds=50,
        repetitions=1, iterations=2, without=["sensitivity", "study"], jobs=1, report=False, progress=False,
    )  # fmt: skip
    assert made.results.provenance["reproduction"]["log"]["name"] == "sessions.ndjson"
    assert sorted(made.results.instances) == ["q0", "q1"]
