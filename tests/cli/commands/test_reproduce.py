"""saferank reproduce: the whole way from a log to a report, and every way to ask for something else."""

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from saferank.errors import ClusterError
from saferank.experiments.run_folder import Pieces
from saferank.instances import load_instances
from saferank.policies import policies_of
from saferank.simulation.results import read_results
from tests.cli.command_line import call

Capture = pytest.CaptureFixture[str]
TINY = ("--queries", 2, "--rounds", 300, "--repetitions", 2, "--sessions", 4000, "--iterations", 5)
PLAIN = (*TINY, "--without", "sensitivity,study", "--policies", "original,bubble-rank", "--models", "cm")


def reproduction_of(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text())["provenance"]["reproduction"]
    return facts


def results_in(folder: Path) -> str:
    """The results as they stand in the file, provenance aside."""
    return (folder / "results.json").read_text().partition('"results": [')[2]


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take seconds, and have tests of their own."""
    monkeypatch.setattr("saferank.reproduction.reproduce._reported", lambda folder, shown: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, with all parts."""
    from saferank.cli import main

    folder = tmp_path_factory.mktemp("whole") / "out"
    assert main(["reproduce", *map(str, TINY), "--out", str(folder)]) == 0
    return folder


def test_it_writes_the_log_the_models_the_results_and_the_report(whole: Path) -> None:
    names = {path.name for path in whole.iterdir()}
    assert {"log.gz", "instances.json", "experiment.json", "results.json", "sensitivity.json", "study.json"} <= names
    assert "report.html" in names
    assert "pieces" not in names


@pytest.mark.usefixtures("blank_figure_files")
def test_it_ends_with_the_claims_and_the_path_of_the_report(tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    assert code == 0
    assert out.splitlines()[-1] == str(tmp_path / "report.html")
    assert any(verdict in out for verdict in ("holds", "undecided"))
    assert " claims of the paper " in out.splitlines()[-2] and " were not run." in out.splitlines()[-2]
    before = (tmp_path / "results.json").read_bytes()
    (tmp_path / "report.html").unlink()
    code, again, _ = call(capsys, "reproduce", *PLAIN, "--resume", "--out", tmp_path)  # plays nothing
    assert (code, again) == (0, out)
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "results.json").read_bytes() == before


def test_results_are_the_papers_five_policies_and_ours_on_the_fitted_queries(whole: Path) -> None:
    results, _ = read_results(whole / "results.json")
    instances = load_instances(whole / "instances.json")
    played = len(policies_of("paper", "ours"))
    assert len(results) == played * len(instances) == played * 2 * 2
    assert {(result.positions, result.items, result.repetitions, result.rounds[-1]) for result in results} == {
        (5, 10, 2, 300)
    }
    assert [result.instance for result in results] == [instance.id for instance in instances for _ in range(played)]


def test_provenance_says_what_was_run(whole: Path) -> None:
    facts = reproduction_of(whole / "results.json")
    assert facts["profile"] == "quick"
    assert (facts["log"]["name"], facts["log"]["sessions"], facts["log"]["synthetic"]) == ("log.gz", 4000, True)
    assert facts["log"]["sha256"] == hashlib.sha256((whole / "log.gz").read_bytes()).hexdigest()
    assert (facts["queries"], facts["rounds"], facts["positions"], facts["rule"]) == (2, 300, 5, "paper:1/T")
    assert facts["models"] == ["pbm", "cm"]
    assert (facts["sensitivity"], facts["study"]) == ("sensitivity.json", "study.json")
    assert set(facts["special"]["optimal"]["wrong_pairs"]) == {"pbm", "cm"}
    assert set(facts["special"]["none_of_best"]["best_missing"]) == {"pbm", "cm"}
    assert set(facts["seconds_by_policy"]) == {*policies_of("paper", "ours")}
    assert facts["peak_memory_mb"] > 10
    assert facts["study_sets"] == {"embedded": ["optimal-original", "worst-original"]}


def test_the_other_parts_stand_in_files_of_their_own(whole: Path) -> None:
    sensitivity, _ = read_results(whole / "sensitivity.json")
    study, source = read_results(whole / "study.json")
    readings = {"bubble-rank:all-candidates", "bubble-rank:shown-only"}
    assert {result.policy for result in sensitivity} == {"kl-ucb-br", "bubble-rank"} | readings
    assert any(result.instance.endswith(" (candidates reversed)") for result in sensitivity)
    assert {result.rule for result in study} == {"paper:1/T", "anytime:1/T"}
    assert {result.model for result in study} == {"pbm", "cm", "dcm", "dbn", "ubm", "ccm"}
    assert source["reproduction"]["study_sets"]["embedded"][0] == "optimal-original"


@pytest.mark.usefixtures("without_report")
def test_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path, capsys: Capture) -> None:
    for jobs in (1, 2):
        assert call(capsys, "reproduce", *PLAIN, "--jobs", jobs, "--out", tmp_path / str(jobs)).code == 0
    assert results_in(tmp_path / "1") == results_in(tmp_path / "2")


@pytest.mark.usefixtures("without_report")
def test_overrides_reach_the_run(tmp_path: Path, capsys: Capture) -> None:
    options = ("--positions", 3, "--items", 6, "--rule", "anytime:0.01", "--models", "dbn,pbm", "--seed", 4)
    assert call(capsys, "reproduce", *PLAIN, *options, "--out", tmp_path).code == 0
    results, source = read_results(tmp_path / "results.json")
    assert {(r.positions, r.items, r.model) for r in results} == {(3, 6, "dbn"), (3, 6, "pbm")}
    assert {(r.policy, r.rule) for r in results} == {("original", None), ("bubble-rank", "anytime:0.01")}
    assert source["seed"] == 4
    assert source["reproduction"]["sensitivity"] is source["reproduction"]["study"] is None
    assert not (tmp_path / "study.json").exists()


@pytest.mark.usefixtures("without_report")
def test_the_profile_decides_what_is_not_overridden(tmp_path: Path, capsys: Capture) -> None:
    options = ("--profile", "paper", "--rounds", 20, "--sessions", 20_000, "--without", "sensitivity,study")
    only = ("--policies", "original", "--models", "cm", "--iterations", 2)
    assert call(capsys, "reproduce", *options, *only, "--out", tmp_path).code == 0
    results, _ = read_results(tmp_path / "results.json")
    assert len(results) == 100
    assert results[0].repetitions == 100


@pytest.mark.usefixtures("without_report")
def test_a_log_of_ones_own_is_taken(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "mine.gz"
    call(capsys, "logs", "synthesize", "--sessions", 3000, "--queries", 3, "--out", log)
    given = ("--log", log, "--format", "yandex-personalized")
    options = [option for option in PLAIN if option not in ("--sessions", 4000)]
    code, _, err = call(capsys, "reproduce", *options, *given, "--out", tmp_path / "out")
    assert code == 0, err
    assert reproduction_of(tmp_path / "out" / "results.json")["log"]["name"] == "mine.gz"
    assert not (tmp_path / "out" / "log.gz").exists()


@pytest.mark.usefixtures("without_report")
def test_a_set_of_ones_own_joins_the_study(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.json"
    call(capsys, "instances", "--queries", 1, "--models", "cm", "--out", file)
    text = file.read_text().replace("optimal-original", "my-query")
    file.write_text(text)
    options = ("--without", "sensitivity", "--study-instances", file)
    assert call(capsys, "reproduce", *TINY, "--models", "cm", *options, "--out", tmp_path / "out").code == 0
    study, source = read_results(tmp_path / "out" / "study.json")
    assert source["reproduction"]["study_sets"]["mine"] == ["my-query"]
    assert [result.rule for result in study if result.instance == "my-query"] == ["paper:1/T", "anytime:1/T"]


BAD = [
    (("--profile", "huge"), "--profile: unknown profile 'huge'; known ones: quick, paper"),
    (("--policies", "best"), "--policies: unknown policy 'best'"),
    (("--models", "guess"), "--models: no estimation for click model 'guess'"),
    (("--rule", "luck"), "--rule: unknown decision rule 'luck'"),
    (("--items", 4), "--items: found 4, expected at least 5, the positions"),
    (("--positions", 11), "--positions: found 11, expected at most 10, a page of the log"),
    (
        ("--items", 11),
        "--items: found 11, but the synthetic log has 10 items a query, all of them on every page; name a",
    ),
    (("--page-length", 8), "--page-length: found 8, but the synthetic log has 10 items a query"),
    (("--page-length", 101), "--page-length: found 101, expected at most 100"),
    (("--page-length", 4), "--positions: found 5, expected at most 4, a page of the log"),
    (("--without", "lunch"), "--without: unknown part 'lunch'; known ones: additions, sensitivity, study"),
    (("--format", "sessions"), "--format: is the format of a log of your own"),
    (("--log", "nowhere.gz"), "--sessions: is about the synthetic log"),
    (("--resume", "--overwrite"), "--resume: cannot be combined with overwrite: choose one"),
    (("--plugin", "json"), "--plugin: json: registers neither a policy nor a click model"),
    (("--study-instances", "nowhere.json"), "--study-instances: nowhere.json: cannot be read"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[" ".join(map(str, options)) for options, _ in BAD])
def test_bad_options_are_refused_in_a_sentence(
    tmp_path: Path, capsys: Capture, options: tuple[object, ...], message: str
) -> None:
    code, _, err = call(capsys, "reproduce", *TINY, *options, "--out", tmp_path / "out")
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_log_needs_its_format(tmp_path: Path, capsys: Capture) -> None:
    code, _, err = call(capsys, "reproduce", "--log", "mine.gz", "--out", tmp_path)
    assert (code, "--log: needs its format" in err) == (2, True)


@pytest.mark.parametrize("option", ["--log", "--study-instances"])
def test_files_of_ones_own_are_not_overwritten(tmp_path: Path, capsys: Capture, option: str) -> None:
    file = tmp_path / ("log.gz" if option == "--log" else "instances.json")
    call(capsys, "instances", "--queries", 1, "--models", "cm", "--out", file)
    before = file.read_bytes()
    code, _, err = call(capsys, "reproduce", *TINY, "--out", tmp_path)
    assert code == 2
    assert f"holds {file.name}, which a run would overwrite; continue it with --resume, start again with --over" in err
    given = (option, file, *(("--format", "sessions") if option == "--log" else ()))
    code, _, err = call(capsys, "reproduce", *given, "--overwrite", "--out", tmp_path)
    assert (code, f"{option}: {file} is where a run writes its own {file.name}" in err) == (2, True)
    assert file.read_bytes() == before


@pytest.mark.usefixtures("without_report")
def test_a_log_with_fewer_queries_than_asked_for_is_told(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "mine.gz"
    call(capsys, "logs", "synthesize", "--sessions", 3000, "--queries", 3, "--out", log)
    options = ("--queries", 7, "--rounds", 100, "--repetitions", 2, "--iterations", 2, *PLAIN[-6:])
    given = ("--log", log, "--format", "yandex-personalized")
    code, _, err = call(capsys, "reproduce", *options, *given, "--out", tmp_path / "out")
    assert (code, "mine.gz: 3 queries have 10 items and a page of at least 5, not 7; all of them are taken" in err) == (
        0,
        True,
    )


def test_results_that_were_damaged_are_an_error(tmp_path: Path, capsys: Capture, whole: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / "results.json").write_text('{"results": [')
    code, _, err = call(capsys, "reproduce", *TINY, "--resume", "--out", tmp_path)
    assert (code, "results.json: is not JSON" in err) == (2, True)


@pytest.mark.usefixtures("without_report")
def test_a_cluster_that_fails_is_told(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*arguments: object, **options: object) -> None:
        raise ClusterError("lost the scheduler at tcp://host:1")

    monkeypatch.setattr("saferank.simulation.engine.simulate", lost)
    code, _, err = call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    assert code == 1
    assert "lost the scheduler at tcp://host:1" in err
    assert "is kept" not in err  # nothing was finished


def test_interrupted_while_the_report_is_made(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("saferank.reporting.build.build_report", interrupt)
    code, _, err = call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    assert code == 130
    assert f"interrupted while the report was made; {tmp_path / 'results.json'} is complete" in err


def test_a_folder_with_a_run_is_neither_overwritten_nor_gone_on_with_unasked(whole: Path, capsys: Capture) -> None:
    code, _, err = call(capsys, "reproduce", *TINY, "--out", whole)
    assert code == 2
    assert "holds a finished run; continue it with --resume, start again with --overwrite" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seed", 1), "was begun with seed = 0, not 1; ask for the same, or start again with --overwrite"),
        (("--rounds", 301), "was begun with rounds = 300, not 301"),
        (("--policies", "original"), "was begun with policies = "),
        (
            ("--without", "study"),
            'was begun with without = [], not ["study"]',
        ),
    ],
)
def test_another_experiment_is_not_gone_on_with(
    whole: Path, capsys: Capture, options: tuple[object, ...], message: str
) -> None:
    code, _, err = call(capsys, "reproduce", *TINY, *options, "--resume", "--out", whole)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("name", "now", "message"),
    [
        ("__version__", "0.0.9", "this is 0.0.9; start again with --overwrite"),
        (
            "package_digest",
            lambda: "0123abcd",
            "was begun by other source code of saferank; start again with --overwrite",
        ),
    ],
)
def test_another_version_is_not_resumed(
    whole: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, name: str, now: object, message: str
) -> None:
    monkeypatch.setattr(f"saferank.experiments.run_folder.{name}", now)
    code, _, err = call(capsys, "reproduce", *TINY, "--resume", "--out", whole)
    assert code == 2
    assert message in err
    assert "0123abcd" not in err


@pytest.mark.usefixtures("without_report")
def test_changed_instances_are_not_gone_on_with(tmp_path: Path, capsys: Capture) -> None:
    call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    with (tmp_path / "instances.json").open("a") as file:
        file.write("\n")
    code, _, err = call(capsys, "reproduce", *PLAIN, "--resume", "--out", tmp_path)
    assert code == 2
    assert "instances.json: is not the file that the run began with" in err


def test_results_of_another_command_are_not_gone_on_with(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "results.json").write_text("{}")
    code, _, err = call(capsys, "reproduce", *PLAIN, "--resume", "--out", tmp_path)
    assert (code, "holds results of another command" in err) == (2, True)


@pytest.mark.usefixtures("without_report")
def test_overwriting_begins_anew(tmp_path: Path, capsys: Capture) -> None:
    call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    assert call(capsys, "reproduce", *PLAIN, "--seed", 1, "--overwrite", "--out", tmp_path).code == 0
    provenance = json.loads((tmp_path / "results.json").read_text())["provenance"]
    digest = hashlib.sha256((tmp_path / "instances.json").read_bytes()).hexdigest()
    assert (provenance["seed"], provenance["instances"]["sha256"]) == (1, digest)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("without_report")
def test_a_full_disk_is_an_error_that_can_be_gone_on_from(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(capsys, "reproduce", *PLAIN, "--out", tmp_path / "whole")
    finish = Pieces.finish

    with monkeypatch.context() as patch:

        def full_after_two(self: Pieces, number: int, rows: Any) -> None:
            if len(self.results) == 2:
                patch.setattr("saferank.files.os.fsync", full)
            finish(self, number, rows)

        patch.setattr(Pieces, "finish", full_after_two)
        code, _, err = call(capsys, "reproduce", *PLAIN, "--out", tmp_path / "full")
    assert code == 1
    assert ".parquet: cannot be written: No space left on device; what was finished is kept; to continue" in err
    assert not (tmp_path / "full" / "results.json").exists()
    code, _, err = call(capsys, "reproduce", *PLAIN, "--resume", "--out", tmp_path / "full")
    assert code == 0
    assert "1,200 of 2,400 rounds are there already" in err
    assert results_in(tmp_path / "full") == results_in(tmp_path / "whole")


@pytest.mark.usefixtures("without_report")
def test_a_disk_that_is_full_when_results_are_written_leaves_no_half_file(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saferank.reproduction.folder import write_outcome

    with monkeypatch.context() as patch:

        def begin_and_fill(*arguments: Any) -> Any:
            patch.setattr("saferank.files.os.fsync", full)
            return write_outcome(*arguments)

        patch.setattr("saferank.reproduction.folder.write_outcome", begin_and_fill)
        code, _, err = call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    assert (code, "results.json: cannot be written: No space left" in err) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["experiment.json", "instances.json", "log.gz", "pieces"]
    assert call(capsys, "reproduce", *PLAIN, "--resume", "--out", tmp_path).code == 0
    assert (tmp_path / "results.json").exists()


def test_without_the_report_extra_it_says_how_to_get_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = call(capsys, "reproduce", *PLAIN, "--out", tmp_path)
    assert code == 0
    assert out.splitlines()[-1] == str(tmp_path / "results.json")
    assert err.splitlines()[-1].endswith("pip install 'saferank[report]'")
