"""``saferank.simulate``: what it takes, what it refuses, and that it does not depend on how it is played."""

import subprocess
import sys
from typing import Any

import pytest

from saferank import RunInterrupted, embedded_instances, simulate
from saferank.errors import ArgumentError, UsageError
from saferank.policies import POLICIES, PolicyKind
from saferank.policies.original import Original
from saferank.simulation import engine

SMALL: dict[str, Any] = {"rounds": 50, "repetitions": 2, "jobs": 1, "progress": False}


def test_a_policy_may_be_a_name_a_class_or_a_kind() -> None:
    instances = embedded_instances(2, models=("cm",))
    kinds: list[Any] = ["original", Original, POLICIES["original"]]
    assert {simulate(instances, [kind], **SMALL).curves[0].policy for kind in kinds} == {"original"}
    assert simulate(instances, "original", **SMALL).policies == ["original"]


def test_results_do_not_depend_on_jobs_and_1e2_is_a_number_of_rounds() -> None:
    instances = embedded_instances(2, models=("cm",))
    one, two = (
        simulate(instances, ["bubble-rank"], rounds=1e2, repetitions=3, seed=4, jobs=jobs, progress=False)
        for jobs in (1, 2)
    )
    assert one.curves == two.curves
    assert one.curves[0].rounds[-1] == 100
    assert one.to_polars().equals(two.to_polars())


def test_a_file_and_the_embedded_set_are_taken_by_name(tmp_path: Any) -> None:
    from saferank.instances import save_instances

    save_instances(tmp_path / "mine.json", embedded_instances(2, models=("cm",)))
    assert simulate(tmp_path / "mine.json", ["original"], **SMALL).models == ["cm"]
    assert len(simulate("embedded", ["original"], **SMALL).instances) == 20


@pytest.mark.parametrize(
    ("changes", "argument", "reason"),
    [
        ({"instances": []}, "instances", "found none, expected at least one"),
        ({"positions": 11}, "instances", "items: found 10 for 11 positions"),
        ({"policies": ["best"]}, "policies", "unknown policy 'best'"),
        ({"policies": ["original", Original]}, "policies", "original is there twice"),
        ({"rounds": 1.5}, "rounds", "found 1.5, expected a whole number"),
        ({"rounds": "many"}, "rounds", "found 'many', expected a whole number"),
        ({"repetitions": 10**9}, "repetitions", "expected at most 1000000"),
        ({"rule": "luck"}, "rule", "unknown decision rule 'luck'"),
        ({"seed": -1}, "seed", "found -1, expected at least 0"),
        ({"jobs": 0}, "jobs", "found 0, expected at least 1"),
        ({"checkpoints": [51]}, "checkpoints", "found 51, expected whole numbers from 1 to 50"),
        ({"cluster": "nowhere"}, "cluster", "expected the address of a Dask scheduler"),
    ],
)
def test_what_cannot_be_used_is_an_argument_error(changes: dict[str, Any], argument: str, reason: str) -> None:
    given = {"instances": embedded_instances(2, models=("cm",)), "policies": ["original"], **SMALL, **changes}
    with pytest.raises(ArgumentError) as caught:
        simulate(**given)
    assert caught.value.argument == argument
    assert reason in caught.value.reason


def test_the_last_round_is_always_a_checkpoint() -> None:
    results = simulate(embedded_instances(2, models=("cm",)), ["original"], checkpoints=[12, 34], **SMALL)
    assert results.curves[0].rounds == [12, 34, 50]
    assert results.to_polars()["round"].max() == 50


def test_more_runs_than_fit_into_memory_are_refused_before_any_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.simulation.experiment.memory_bytes", lambda: 1e6)
    with pytest.raises(ArgumentError, match=r"repetitions: 1,000 runs at 50 checkpoints take 0\.0 GB, this machine"):
        simulate(embedded_instances(2, models=("cm",)), ["original"], rounds=50, repetitions=1000, progress=False)


def test_a_class_that_nobody_registered_is_refused() -> None:
    with pytest.raises(ValueError, match="class int is not registered"):
        simulate(embedded_instances(2, models=("cm",)), [int], **SMALL)


def test_a_state_with_a_list_is_a_sentence() -> None:
    known = POLICIES["original"]

    def start(setup: Any) -> Any:
        policy, state = known.start(setup)
        return policy, state._replace(learned=[0])

    kind = PolicyKind("listed", known.policy, start=start, leader=known.leader)
    with pytest.raises(UsageError, match=r"test_simulate.py:\d+: evidence\.learned of listed cannot be saved"):
        simulate(embedded_instances(2, models=("cm",)), [kind], **SMALL)


def test_an_interrupt_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "simulate", interrupt)
    with pytest.raises(RunInterrupted, match="interrupted after 0 of 200 rounds; nothing was written"):
        simulate(embedded_instances(2, models=("cm",)), ["original"], **SMALL)


def test_importing_it_loads_no_compiler() -> None:
    script = "import sys; from saferank import simulate; print('numba' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
