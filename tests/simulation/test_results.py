"""results.json: exactly the documented fields, written whole or not at all, read back as it was."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saferank._version import COMMAND_LINE
from saferank.instances.embedded import embedded_instances
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Plan, cells_of
from saferank.simulation.results import (
    Result,
    ResultsError,
    mean_and_stderr,
    provenance,
    read_results,
    write_results,
)

FIELDS = [
    "instance",
    "model",
    "policy",
    "rule",
    "positions",
    "items",
    "repetitions",
    "rounds",
    "regret_mean",
    "regret_stderr",
    "violations_mean",
    "violations_stderr",
    "wrong_certificates_mean",
]


def _source() -> dict[str, Any]:
    token = COMMAND_LINE.set(("saferank", "simulate", "my file.json"))
    try:
        return provenance("saferank.simulate", 3, 1.23456)
    finally:
        COMMAND_LINE.reset(token)


SOURCE = _source()


@pytest.fixture(scope="module")
def results() -> list[Result]:
    plan = Plan(("kl-ucb-br", "original"), n_positions=5, rounds=200, repetitions=2)
    return simulate(cells_of(embedded_instances(2, models=("pbm",)), plan))


def test_the_file_has_the_documented_fields(results: list[Result], tmp_path: Path) -> None:
    write_results(tmp_path / "results.json", results, SOURCE)
    data = json.loads((tmp_path / "results.json").read_text())
    assert list(data) == ["provenance", "results"]
    for entry in data["results"]:
        assert list(entry) == [*FIELDS, "lifetime", "clicks_relative_mean", "worst_page_min", "world"]
        assert len(entry["clicks_relative_mean"]) == len(entry["worst_page_min"]) == len(entry["rounds"])
        columns = [entry[field] for field in FIELDS[8:] if entry[field] is not None]
        assert {len(column) for column in columns} == {len(entry["rounds"])}
    assert [entry["wrong_certificates_mean"] is None for entry in data["results"]] == [False, True] * 2


def test_provenance_tells_version_command_seed_seconds_and_machine() -> None:
    assert list(SOURCE) == ["version", "command", "seed", "seconds", "machine"]
    assert SOURCE["command"] == "saferank simulate 'my file.json'"
    assert (SOURCE["seed"], SOURCE["seconds"]) == (3, 1.235)


def test_what_is_written_is_read_back(results: list[Result], tmp_path: Path) -> None:
    write_results(tmp_path / "results.json", results, SOURCE)
    assert read_results(tmp_path / "results.json") == (results, SOURCE)


def test_a_full_disk_leaves_the_old_file(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "results.json"
    target.write_text("old")
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_results(target, results, SOURCE)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("results.json", "old")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "results: is missing"),
        ('{"results": [3]}', r"results\[0\]: expected an object"),
        ('{"results": [{"instance": "a"}]}', r"results\[0\]: missing 12 required"),
        ('{"results": [{"colour": "a"}]}', "unexpected keyword argument 'colour'"),
    ],
)
def test_a_file_that_is_no_results_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ResultsError, match=message) as caught:
        read_results(tmp_path / "results.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]], ([3.0, 2.0], [2 / 3**0.5, 0.0])), ([[4.0]], ([4.0], [None]))],
)
def test_standard_errors_have_one_degree_of_freedom_less(runs: Any, expected: Any) -> None:
    mean, stderr = mean_and_stderr(np.array(runs))
    assert mean == expected[0]
    assert stderr == [value if value is None else pytest.approx(value) for value in expected[1]]
