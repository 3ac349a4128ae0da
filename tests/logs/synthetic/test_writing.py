"""The synthetic log: exact in its format, the same for the same seed, and clicked as planted."""

import gzip
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from saferank.click_models import CLICK_MODELS
from saferank.instances import Instance, InstanceError, load_instances, save_instances
from saferank.instances.embedded import embedded_instances
from saferank.logs import read_log, summarize_log, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.verbs import expected_clicks
from tests.reference.users import logs as reference

RECORDS = {
    "M": re.compile(r"\d+\tM\t\d+\t\d+"),
    "Q": re.compile(r"\d+\t\d+\tQ\t\d+\t\d+\t\d+,\d+(\t\d+,\d+){10}"),
    "T": re.compile(r"\d+\t\d+\tT\t\d+\t\d+\t\d+,\d+(\t\d+,\d+){10}"),
    "C": re.compile(r"\d+\t\d+\tC\t\d+\t\d+"),
}


def lines_of(folder: Path, sessions: int = 1500, model: str = "pbm", seed: int = 0) -> list[str]:
    path = folder / "log"
    write_synthetic_log(path, planted_instances(5, model), sessions, seed)
    return path.read_text().splitlines()


def test_every_line_is_a_record(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    kinds = ["M" if line.split("\t")[1] == "M" else line.split("\t")[2] for line in lines]
    assert all(RECORDS[kind].fullmatch(line) for kind, line in zip(kinds, lines, strict=True))
    assert kinds.count("M") == 1500
    assert set(kinds) == {"M", "Q", "T", "C"}
    assert summarize_log(tmp_path / "log", "yandex-personalized", max_bad=0.0).stray_clicks == 0


def test_it_is_as_untidy_as_a_real_log(tmp_path: Path) -> None:
    lines = [line.split("\t") for line in lines_of(tmp_path)]
    neighbours = pairwise(lines)
    records = [(one, two) for one, two in neighbours if one[0] == two[0] and one[1] != "M"]
    asked_again = [1 for one, two in records if one[2] == "Q" == two[2] and one[4] == two[4]]
    back_in_time = [1 for one, two in records if two[2] == "C" and int(two[1]) < int(one[1])]
    of_an_earlier_page = [1 for one, two in records if one[2] == "Q" and two[2] == "C" and one[3] != two[3]]
    pages = reference.read((tmp_path / "log").read_bytes()).pages
    repeated = sum(line[2] == "C" for line in lines) - sum(len(page.clicked) for page in pages)
    assert min(map(len, (asked_again, back_in_time, of_an_earlier_page))) > 20
    assert repeated > 20
    assert 50 < sum(page.test for page in pages) < 150
    assert not any(page.clicked for page in pages if page.test)
    assert any(not page.clicked for page in pages)


def test_the_truth_is_named_like_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    truth = write_synthetic_log(path, planted_instances(5, "dcm"), 2000)
    log = read_log(path, "yandex-personalized")
    assert log.queries == tuple(instance.id for instance in truth) == ("1001", "1002", "1003", "1004", "1005")
    assert log.rankings == tuple(instance.items for instance in truth)
    assert truth[2].items[3] == "1003004"
    rankings = {(int(query), items.tobytes()) for query, items in zip(log.pages.query, log.pages.items, strict=True)}
    assert len(rankings) == 5 * 6
    save_instances(tmp_path / "truth.json", truth)
    assert load_instances(tmp_path / "truth.json")[0].items == truth[0].items


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, again, other = (lines_of(tmp_path, sessions=200, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert lines_of(tmp_path, sessions=100, seed=1) == one[: len(lines_of(tmp_path, sessions=100, seed=1))]


def test_gz_is_packed_and_the_same_every_time(tmp_path: Path) -> None:
    instances = planted_instances(2, "cm")
    write_synthetic_log(tmp_path / "log", instances, 50)
    packed = []
    for _ in range(2):
        write_synthetic_log(tmp_path / "log.gz", instances, 50)
        packed.append((tmp_path / "log.gz").read_bytes())
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]) == (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("model", CLICK_MODELS)
def test_clicks_are_those_of_the_planted_model(model: str, tmp_path: Path) -> None:
    """Mean clicks on every ranking are within five standard errors: 18 rankings, one failure in 10^5 seeds."""
    path = tmp_path / "log"
    truth = write_synthetic_log(path, planted_instances(3, model), 6000, seed=5)
    log = read_log(path, "yandex-personalized")
    query, items, clicks, weight = log.pages
    for ranking in np.unique(items, axis=0):
        there = (items == ranking).all(axis=1)
        total, n = clicks[there].sum(axis=1), weight[there]
        mean = np.average(total, weights=n)
        error = np.sqrt(np.average((total - mean) ** 2, weights=n) / n.sum())
        instance = truth[int(query[there][0])]
        shown = np.array([instance.items.index(log.pairs[item][1]) for item in ranking], np.uint32)
        assert abs(mean - expected_clicks(instance.model, shown)) < 5 * error


def test_frequent_queries_and_the_original_order(tmp_path: Path) -> None:
    """Shares within five standard errors; half of the later pages repeat a query, so fewer than n are independent."""
    write_synthetic_log(tmp_path / "log", planted_instances(4, "pbm"), 6000)
    pages = reference.read((tmp_path / "log").read_bytes()).pages
    shares = np.array([1, 2, 3, 4]) ** -0.8 / (np.array([1, 2, 3, 4]) ** -0.8).sum()
    counts = np.array([sum(page.query == 1001 + q for page in pages) for q in range(4)])
    assert np.abs(counts / len(pages) - shares).max() < 5 * np.sqrt(2 * 0.25 / len(pages))
    original = sum(page.items == sorted(page.items) for page in pages) / len(pages)
    assert abs(original - 0.6) < 5 * np.sqrt(0.24 / len(pages))


def test_larger_instances_show_some_of_their_items(tmp_path: Path) -> None:
    instances = embedded_instances(2, n_items=15, models=("pbm",))
    write_synthetic_log(tmp_path / "log", instances, 500)
    log = read_log(tmp_path / "log", "yandex-personalized")
    assert len({item for query, item in log.pairs if query == 0}) > 10


def test_what_cannot_be_planted(tmp_path: Path) -> None:
    short = planted_instances(1, "cm")[0]
    model = type(short.model)(short.model.attraction[:5])
    with pytest.raises(InstanceError, match="found 5 for 10 positions"):
        write_synthetic_log(tmp_path / "log", [Instance("q", model, "cm", short.items[:5])], 10)
    many = type(short.model)(np.full(1000, 0.1))
    with pytest.raises(ValueError, match="instance 'q' has 1000 items, expected fewer than 1000"):
        write_synthetic_log(tmp_path / "log", [Instance("q", many, "cm", tuple(map(str, range(1000))))], 10)
    with pytest.raises(ValueError, match="queries: found 0, expected at least 1"):
        planted_instances(0, "cm")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_half(tmp_path: Path) -> None:
    def stop(n_sessions: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "log").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_synthetic_log(tmp_path / "log", planted_instances(2, "cm"), 10, progress=stop)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("log", "old")]
