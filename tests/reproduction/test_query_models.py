"""The instances of a reproduction from a log of one's own: pages of any length, and items from beyond a page."""

from pathlib import Path

import pytest

from saferank.errors import ArgumentError
from saferank.logs import write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.progress import progress_of
from saferank.reproduction.log import fitted_instances
from saferank.reproduction.protocol import Protocol


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queries with pages of 8 of their 20 items."""
    path = tmp_path_factory.mktemp("log") / "log.gz"
    users = planted_instances(2, "cm", n_items=20)
    write_synthetic_log(path, users, sessions=1500, page_length=8, all_items=True)
    return path


def request(log: Path, **changes: int) -> Protocol:
    return Protocol(log=log, format="yandex-personalized", models=("cm",), queries=2, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"items": 20}, {"items": 20, "page_length": 8}, {"items": 6}])
def test_a_query_takes_part_with_its_page_and_what_other_pages_showed(
    log: Path, changes: dict[str, int], tmp_path: Path
) -> None:
    asked = request(log, **changes)
    instances, _, _ = fitted_instances(asked.checked(), tmp_path, progress_of(False))
    assert [instance.id for instance in instances] == ["1001", "1002"]
    for instance in instances:
        names = [f"{instance.id}{n:03d}" for n in range(1, 21)]
        assert instance.items[:8] == tuple(names[: min(8, changes["items"])])
        assert len(instance.items) == changes["items"]


@pytest.mark.parametrize(
    ("changes", "argument", "reason"),
    [
        ({"items": 21}, "items", r"log.gz: 0 queries have 21 items and a page of at least 5; choose fewer items"),
        ({"items": 20, "positions": 9}, "items", "0 queries have 20 items and a page of at least 9"),
        ({"page_length": 10}, "page_length", r"log.gz: no query has a page of 10 items; there are pages of 8 items"),
        ({"page_length": 8, "positions": 9}, "positions", "found 9, expected at most 8, a page of the log"),
    ],
)
def test_what_the_log_does_not_have_is_named(
    log: Path, changes: dict[str, int], argument: str, reason: str, tmp_path: Path
) -> None:
    asked = request(log, **changes)
    with pytest.raises(ArgumentError, match=reason) as caught:
        fitted_instances(asked.checked(), tmp_path, progress_of(False))
    assert caught.value.argument == argument
