"""What is wrong with a results file is said in a sentence; nothing unsound gets further."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from saferank.experiments.results import Results
from saferank.reporting.reading import ReportError, read_run
from saferank.simulation.results import ResultsError
from tests.reporting.planted import curve, write

GOOD = curve("kl-ucb-br")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instance": 7}, "results[0]: instance: expected a string"),
        ({"rule": 1}, "rule: expected a string or null"),
        ({"repetitions": 0}, "repetitions: expected a whole number of at least 1"),
        ({"positions": True}, "positions: expected a whole number"),
        ({"rounds": []}, "rounds: expected checkpoints"),
        ({"rounds": [1, 10, 10, 20, 30]}, "rounds: expected checkpoints, whole numbers in ascending order"),
        ({"rounds": "12345"}, "rounds: expected checkpoints"),
        ({"regret_mean": [1.0]}, "regret_mean: expected 5 finite numbers, one for each checkpoint"),
        ({"regret_mean": [1, 2, 3, 4, None]}, "regret_mean: expected 5 finite numbers"),
        ({"regret_mean": [1, 2, 3, 4, "5"]}, "regret_mean: expected 5 finite numbers"),
        ({"violations_stderr": [None, None, None, None, 1.0]}, "violations_stderr: expected 5 finite numbers"),
        ({"violations_mean": None}, "violations_mean: expected 5 finite numbers"),
        ({"wrong_certificates_mean": 3}, "wrong_certificates_mean: expected 5 finite numbers"),
    ],
)
def test_unsound_results(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"provenance": {}, "results": [{**asdict(GOOD), **change}]}))
    with pytest.raises(ResultsError) as problem:
        read_run(path)
    assert message in str(problem.value)
    assert str(problem.value).startswith(str(path))
    with pytest.raises(ResultsError):
        Results.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ('{"provenance": {}, "results": [{"instance"', "it seems cut off"),
        ('{"provenance": {}, "results": [NaN]}', "found NaN"),
        ('{"provenance": {}, "results": []}', "results: is empty; make some with saferank simulate"),
        ('{"provenance": {}, "results": [3]}', "results[0]: expected an object"),
        ("[]", "results: is missing"),
    ],
)
def test_files_that_are_no_results(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises((ReportError, ResultsError)) as problem:
        read_run(path)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_infinity_that_hides_in_an_exponent(tmp_path: Path) -> None:
    text = write(tmp_path / "results.json", [GOOD]).read_text().replace("100.0]", "1e999]", 1)
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ResultsError, match="regret_mean: expected 5 finite numbers"):
        read_run(tmp_path / "results.json")


def test_policies_on_different_queries_are_not_compared(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", [GOOD, replace(GOOD, instance="q2"), replace(GOOD, policy="top-rank")])
    with pytest.raises(ReportError, match="top-rank under pbm was not run on the same queries as kl-ucb-br"):
        read_run(path)


def test_a_policy_that_is_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", [GOOD, GOOD])
    with pytest.raises(ReportError, match="kl-ucb-br on instance 'q' \\(pbm\\) is there twice; keep one"):
        read_run(path)


def test_leaving_out(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", [GOOD, curve("bubble-rank")])
    assert read_run(path, ["bubble-rank"]).policies == ["kl-ucb-br"]
    with pytest.raises(ReportError, match="no results of 'bubble-ran' to leave out; there are kl-ucb-br, bubble-rank"):
        read_run(path, ["bubble-ran"])
    with pytest.raises(ReportError, match="leave out fewer policies"):
        read_run(path, ["bubble-rank", "kl-ucb-br"])


def test_the_papers_click_models_come_first(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", [curve("original", model) for model in ("ubm", "cm", "mine", "pbm")])
    assert read_run(path).models == ["pbm", "cm", "ubm", "mine"]
