"""``saferank fit``: from a log file to instances that can be played, or one line about what is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from saferank.cli import main
from saferank.click_models import CLICK_MODELS
from saferank.click_models.shapes import field_shapes
from saferank.fitting import ESTIMATORS
from saferank.instances import load_instances
from saferank.logs import read_log
from tests.cli.command_line import call

Capture = pytest.CaptureFixture[str]
ITEMS = [f"item-{i}" for i in range(11)]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queries with rankings of ten items, one that never had ten; 700 pages."""
    random = np.random.default_rng(1)
    pages = []
    for n in range(700):
        query = ("often", "rare", "short")[(n % 7 > 3) + (n % 7 > 5)]
        items = (
            ITEMS[:4] if query == "short" else [ITEMS[i] for i in (random.permutation(11)[:10] if n % 3 else range(10))]
        )
        clicked = [item for k, item in enumerate(items) if random.random() < 0.4 / (k + 1)]
        pages.append({"query": query, "items": items, "clicked": clicked})
    path = tmp_path_factory.mktemp("log") / "log.ndjson"
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    return path


def fit(log: Path, out: Path, *options: object) -> int:
    arguments = ["fit", log, "--format", "sessions", "--queries", 3, "--replicates", 3, "--out", out, *options]
    return main([str(argument) for argument in arguments])


def test_help_says_what_how_and_what_comes_out(capsys: Capture) -> None:
    assert main(["fit", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(words in out for words in ("Usage: saferank fit", "Example: saferank fit", "What comes out:"))


def test_instances_are_those_of_the_library_in_the_order_of_the_ranking(log: Path, tmp_path: Path) -> None:
    assert fit(log, tmp_path / "mine.json", "--iterations", 5) == 0
    everything = load_instances(tmp_path / "mine.json")
    assert [(i.id, i.model_name) for i in everything] == [
        (q, m) for q in ("often", "rare", "short") for m in ESTIMATORS
    ]
    assert {instance.items for instance in everything if instance.id == "short"} == {tuple(ITEMS[:4])}
    instances = [instance for instance in everything if instance.id != "short"]
    assert {instance.items for instance in instances} == {tuple(ITEMS[:10])}
    read = read_log(log, "sessions", queries=3)
    expected = ESTIMATORS["pbm"](read, 5).model
    place = read.pairs.index((read.queries.index("rare"), "item-7"))
    found = next(i for i in instances if (i.id, i.model_name) == ("rare", "pbm")).model
    assert found.attraction[7] == expected.attraction[place]
    assert found.examination.tolist() == expected.examination.tolist()


def test_errors_stand_beside_in_the_same_shape(log: Path, tmp_path: Path) -> None:
    assert fit(log, tmp_path / "mine.json", "--iterations", 2) == 0
    errors = json.loads((tmp_path / "mine-errors.json").read_text(encoding="utf-8"))
    assert list(errors) == ["about", "errors"]
    for instance, entry in zip(load_instances(tmp_path / "mine.json"), errors["errors"], strict=True):
        shapes = field_shapes(CLICK_MODELS[entry["model"]])
        assert list(entry) == ["id", "model", *shapes]
        assert (entry["id"], entry["model"]) == (instance.id, instance.model_name)
        for name, shape in shapes.items():
            shape_of_errors = np.shape(shape.read(entry[name], len(instance.items)))
            assert shape_of_errors == np.shape(getattr(instance.model, name))


def test_models_are_compared_on_held_out_pages(log: Path, tmp_path: Path, capsys: Capture) -> None:
    assert fit(log, tmp_path / "mine.json", "--iterations", 3, "--evaluate", 0.25, "--models", "pbm,ccm") == 0
    out = capsys.readouterr().out
    assert "held-out pages" in out
    assert sum(line.strip().startswith(("pbm *", "ccm *")) for line in out.splitlines()) == 1
    assert (tmp_path / "mine-ctr.png").read_bytes().startswith(PNG)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine-ctr.png", "mine-errors.json", "mine.json"]


def test_the_same_seed_writes_the_same_files(log: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert fit(log, tmp_path / name / "mine.json", "--iterations", 2, "--models", "cm", "--seed", 3) == 0
    for file in ("mine.json", "mine-errors.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_what_comes_out_can_be_played(log: Path, tmp_path: Path) -> None:
    options = ("--iterations", 2, "--models", "pbm,ubm", "--replicates", 0, "--page-length", 10)
    assert fit(log, tmp_path / "mine.json", *options) == 0
    assert not (tmp_path / "mine-errors.json").exists()
    play = ["simulate", str(tmp_path / "mine.json"), "--policies", "original", "--rounds", "50", "--repetitions", "2"]
    assert main([*play, "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "pbm,pmb"], "--models: no estimation for click model 'pmb'; known ones: pbm, cm"),
        (["--format", "yandex"], "--format: unknown format 'yandex'; known ones: yandex-personalized"),
        (["--evaluate", "1"], "--evaluate: found 1, expected a share between 0 and 1"),
        (["--evaluate", "1e-9"], "--evaluate: 1e-09 leaves no page to fit or none to evaluate"),
        (["--replicates", "1"], "--replicates: found 1, expected 0 or at least 2"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    options: list[str], message: str, log: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert fit(log, tmp_path / "new" / "mine.json", "--iterations", 1, *options) == 2
    err = capsys.readouterr().err.splitlines()
    assert message in err[-1]
    assert not (tmp_path / "new").exists()


def test_a_log_without_pages_of_the_length_gives_no_instances(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.ndjson"
    log.write_text('{"query": "q", "items": ["a", "b"], "clicked": []}\n', encoding="utf-8")
    assert fit(log, tmp_path / "mine.json", "--page-length", 10) == 2
    expected = f"--page-length: {log}: no query has a page of 10 items; there are pages of 2 items; choose one of these"
    assert expected in capsys.readouterr().err


def test_a_log_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert fit(tmp_path / "none", tmp_path / "mine.json") == 2
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_an_interrupted_fit_writes_nothing(
    log: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("saferank.fitting.fit.standard_errors", interrupt)
    assert fit(log, tmp_path / "new" / "mine.json", "--iterations", 1, "--models", "cm") == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_without_matplotlib_there_is_no_figure_and_a_hint(
    log: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert fit(log, tmp_path / "mine.json", "--iterations", 1, "--models", "cm", "--evaluate", 0.3) == 0
    assert "pip install 'saferank[report]'" in capsys.readouterr().err
    assert not (tmp_path / "mine-ctr.png").exists()


def test_a_dash_is_not_the_name_of_a_file(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, "fit", "log.gz", "--format", "sessions", "--out", "-")
    assert (code, "--out: found -, expected the name of a file" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
