"""Pages of any length: rankings of 8, 14 and 20 items from logs, and catalogues that are larger than a page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saferank import fit
from saferank.cli import main
from saferank.errors import ArgumentError
from saferank.fitting import ESTIMATORS
from saferank.fitting.export import FEWEST_DISPLAYS, instances_of
from saferank.instances import load_instances
from saferank.logs import read_log

Capture = pytest.CaptureFixture[str]
QUIET: Any = {"replicates": 0, "iterations": 3, "progress": False}


def write_log(path: Path, pages: list[tuple[str, list[str]]]) -> Path:
    """A log of the format ``sessions``; the first item of every third page is clicked."""
    records = [
        {"query": query, "items": items, "clicked": items[: int(n % 3 == 0)]} for n, (query, items) in enumerate(pages)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def ranking(length: int, first: int = 0) -> list[str]:
    return [f"item-{n}" for n in range(first, first + length)]


@pytest.mark.parametrize("length", [8, 14, 20])
def test_a_log_whose_pages_have_another_length(length: int, tmp_path: Path) -> None:
    """The most frequent ranking of the most frequent length, and as many positions, without being asked."""
    often, seldom = ranking(length), ranking(length)[::-1]
    log = write_log(tmp_path / "log", [("q", often)] * 30 + [("q", seldom)] * 20 + [("q", ranking(3))] * 40)
    (instance,) = fit(log, "sessions", ["pbm"], **QUIET).instances
    assert instance.items == tuple(often)
    assert len(instance.model.examination) == length
    expected = ESTIMATORS["pbm"](read_log(log, "sessions", page_length=length), 3).model
    assert instance.model.attraction.tolist() == expected.attraction.tolist()


def test_ten_comes_first_then_the_most_frequent_length_of_the_query(tmp_path: Path) -> None:
    pages = [("ten", ranking(8))] * 9 + [("ten", ranking(10))] + [("eight", ranking(8))] * 2 + [("eight", ranking(3))]
    log = write_log(tmp_path / "log", [*pages, ("even", ranking(4)), ("even", ranking(6)[::-1])])
    by_length = {length: read_log(log, "sessions", page_length=length) for length in (None, 8, 10)}
    found = {length: dict(zip(log.queries, log.rankings, strict=True)) for length, log in by_length.items()}
    assert found[None] == {"ten": tuple(ranking(10)), "eight": tuple(ranking(8)), "even": tuple(ranking(6)[::-1])}
    assert found[8] == {"ten": tuple(ranking(8)), "eight": tuple(ranking(8)), "even": None}
    assert found[10] == {"ten": tuple(ranking(10)), "eight": None, "even": None}


def test_items_beyond_the_ranking_are_the_most_shown_ones(tmp_path: Path) -> None:
    page, others = ranking(5), [ranking(5, 5), ranking(5, 10), ranking(5, 15)]
    counts = (FEWEST_DISPLAYS, 2 * FEWEST_DISPLAYS, FEWEST_DISPLAYS - 1)  # the last ones were not shown often enough
    pages = [("q", page)] * 50
    for other, times in zip(others, counts, strict=True):
        pages += [("q", other)] * times
    log = read_log(write_log(tmp_path / "log", pages), "sessions", page_length=5)
    model = ESTIMATORS["pbm"](log, 3).model
    (pooled,) = instances_of(log, {"pbm": model}, items=100)
    assert pooled.items == (*page, *others[1], *others[0])
    assert len(pooled.model.examination) == 5
    places = [log.pairs.index((0, item)) for item in pooled.items]
    assert pooled.model.attraction.tolist() == model.attraction[places].tolist()
    assert [len(instances_of(log, {"pbm": model}, items=n)[0].items) for n in (None, 3, 7)] == [5, 3, 7]


@pytest.mark.parametrize("length", [8, 14, 20])
def test_a_synthetic_log_of_another_length_is_fitted_and_played(length: int, tmp_path: Path) -> None:
    log, out = str(tmp_path / "log.gz"), str(tmp_path / "mine.json")
    sizes = ["--sessions", "300", "--queries", "2", "--page-length", str(length)]
    assert main(["logs", "synthesize", *sizes, "--out", log]) == 0
    options = ["--format", "yandex-personalized", "--queries", "2", "--models", "pbm", "--iterations", "2"]
    assert main(["fit", log, *options, "--replicates", "0", "--out", out]) == 0
    assert [len(instance.items) for instance in load_instances(out)] == [length, length]
    play = ["--policies", "original", "--positions", str(length), "--rounds", "20", "--repetitions", "1"]
    assert main(["simulate", out, *play, "--out", str(tmp_path / "out")]) == 0


def test_fifty_items_and_ten_positions_from_a_log_end_to_end(tmp_path: Path) -> None:
    log, truth, out = (str(tmp_path / name) for name in ("log.gz", "truth.json", "mine.json"))
    sizes = ["--sessions", "4000", "--queries", "2", "--page-length", "10", "--items", "50"]
    assert main(["logs", "synthesize", *sizes, "--out", log, "--truth", truth]) == 0
    options = ["--format", "yandex-personalized", "--queries", "2", "--models", "pbm,cm", "--iterations", "2"]
    assert main(["fit", log, *options, "--replicates", "0", "--items", "50", "--out", out]) == 0
    for planted, found in zip(load_instances(truth), load_instances(out)[::2], strict=True):
        assert found.items[:10] == planted.items[:10]
        assert sorted(found.items) == sorted(planted.items)
        assert len(found.items) == 50
    names = ("original", "safe-draw", "kl-ucb-br")
    play = ["--policies", ",".join(names), "--positions", "10", "--rounds", "300", "--repetitions", "1"]
    assert main(["simulate", out, *play, "--out", str(tmp_path / "out")]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert {(result["items"], result["positions"]) for result in results} == {(50, 10)}
    assert {(result["policy"], result["model"]) for result in results} == {
        (name, model) for name in names for model in ("pbm", "cm")
    }
    regret = {(r["instance"], r["model"], r["policy"]): r["regret_mean"][-1] for r in results}
    for (query, model, name), value in regret.items():
        if name != "original":  # they show other pages than the original ranking
            assert value != regret[query, model, "original"]
    assert all(result["violations_mean"][-1] == 0 for result in results)


def test_attraction_of_fifty_items_is_found_again(tmp_path: Path) -> None:
    """Of the cascade model, whose estimate is a mean: within 5 standard errors for 50 items, P(error) < 1e-4."""
    log, truth = str(tmp_path / "log.gz"), str(tmp_path / "truth.json")
    sizes = ["--sessions", "20000", "--queries", "1", "--items", "50", "--model", "cm"]
    assert main(["logs", "synthesize", *sizes, "--out", log, "--truth", truth]) == 0
    found = fit(log, "yandex-personalized", ["cm"], 1, items=50, **QUIET)
    (planted,), (instance,) = load_instances(truth), found.instances
    tosses = found.models["cm"].tosses
    pages = read_log(log, "yandex-personalized", queries=1)
    for item, attraction in zip(instance.items, instance.model.attraction, strict=True):
        expected = planted.model.attraction[planted.items.index(item)]
        n = tosses[pages.pairs.index((0, item))]
        assert n > 50
        assert abs(attraction - expected) < 5 * np.sqrt(0.25 / n) + 2 / n


@pytest.mark.parametrize(
    ("options", "argument", "reason"),
    [
        (
            {"page_length": 14},
            "page_length",
            r"log: no query has a page of 14 items; there are pages of 8, 5 items; choose",
        ),
        ({"page_length": 0}, "page_length", "found 0, expected at least 1"),
        ({"page_length": 101}, "page_length", "found 101, expected at most 100"),
        ({"page_length": 8, "items": 5}, "items", "found 5, expected at least 8, the page length"),
        ({"items": 0}, "items", "found 0, expected at least 1"),
    ],
)
def test_lengths_that_cannot_be_had_are_named(options: Any, argument: str, reason: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [("q", ranking(8)), ("q", ranking(8)), ("q", ranking(5))])
    with pytest.raises(ArgumentError, match=reason) as caught:
        fit(log, "sessions", ["cm"], **QUIET, **options)
    assert caught.value.argument == argument


def test_more_positions_than_the_query_has_items_are_refused(tmp_path: Path, capsys: Capture) -> None:
    log = write_log(tmp_path / "log", [("q", ranking(8))] * 20)
    fit(log, "sessions", ["cm"], **QUIET).save(tmp_path / "mine.json")
    assert main(["simulate", str(tmp_path / "mine.json"), "--positions", "9", "--out", str(tmp_path / "out")]) == 2
    assert "instance 'q' (cm): items: found 8 for 9 positions; show fewer" in capsys.readouterr().err
