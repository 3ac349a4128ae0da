"""The readers of sessions: newline-delimited JSON and Parquet."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.logs import LogError, read_log, summarize_log
from saferank.logs.formats import sessions
from tests.logs.log_writing import same

PAGES = [
    {"query": "shoes", "items": ["a", "b", "c"], "clicked": ["b"]},
    {"query": "hats", "items": ["a", "b"], "clicked": []},
    {"query": "shoes", "items": ["a", "b", "c"], "clicked": ["b", "b", "z"]},
    {"query": "shoes", "items": [f"item {n}" for n in range(10)], "clicked": ["item 9", "item 0"]},
]


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def test_by_hand(tmp_path: Path) -> None:
    log = read_log(write_lines(tmp_path / "log", PAGES), "sessions", queries=2)
    assert log.queries == ("shoes", "hats")
    assert log.pairs[:5] == ((0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "b"))
    assert log.pages.weight.tolist() == [2, 1, 1]
    assert log.pages.items[:2, :4].tolist() == [[0, 1, 2, -1], [3, 4, -1, -1]]
    assert log.pages.clicks.tolist() == [[0, 1] + [0] * 8, [0] * 10, [1] + [0] * 8 + [1]]
    assert log.rankings == (tuple(f"item {n}" for n in range(10)), None)
    assert (log.summary.sessions, log.summary.stray_clicks, log.summary.lines) == (None, 1, 4)


def test_only_the_selected_queries_are_kept(tmp_path: Path) -> None:
    log = read_log(write_lines(tmp_path / "log", PAGES), "sessions", queries=1)
    assert log.queries == ("shoes",)
    assert {query for query, _ in log.pairs} == {0}
    assert log.pages.weight.sum() == 3


def test_json_gzip_and_parquet_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    pages = [
        {
            "query": f"q{random.integers(4)}",
            "items": [f"d{d}" for d in random.permutation(12)[:n]],
            "clicked": [f"d{n}"],
        }
        for n in random.integers(1, 12, 5000)
    ]
    plain = write_lines(tmp_path / "plain", pages)
    (tmp_path / "packed").write_bytes(gzip.compress(plain.read_bytes()))
    polars.DataFrame(pages).write_parquet(tmp_path / "table")
    monkeypatch.setattr(sessions, "_SLICE", 777)
    log = read_log(plain, "sessions", queries=3)
    assert same(log, read_log(tmp_path / "packed", "sessions", queries=3, chunk=100))
    told: list[int] = []
    assert same(log, read_log(tmp_path / "table", "sessions", queries=3, progress=told.append))
    assert sum(told) == 2 * (tmp_path / "table").stat().st_size


def test_numbers_are_names_too(tmp_path: Path) -> None:
    numbers = write_lines(tmp_path / "numbers", [{"query": 7, "items": [1, 2**70], "clicked": [1]}])
    names = write_lines(tmp_path / "names", [{"query": "7", "items": ["1", str(2**70)], "clicked": ["1"]}])
    polars.DataFrame({"query": [7], "items": [[1, 2]], "clicked": [[1]]}).write_parquet(tmp_path / "table")
    assert same(read_log(numbers, "sessions"), read_log(names, "sessions"))
    assert read_log(tmp_path / "table", "sessions").pairs == ((0, "1"), (0, "2"))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("{", "not JSON"),
        ("\udcff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not an object with query, items and clicked"),
        ('{"query": "a", "items": ["b"]}', "not an object with query, items and clicked"),
        ('{"query": "a", "items": [], "clicked": []}', "not an object with query, items and clicked"),
        ('{"query": "", "items": ["b"], "clicked": []}', "not an object with query, items and clicked"),
        ('{"query": true, "items": ["b"], "clicked": []}', "not an object with query, items and clicked"),
        ('{"query": "a", "items": ["b", null], "clicked": []}', "not an object with query, items and clicked"),
        ('{"query": "a", "items": ["b"], "clicked": "b"}', "not an object with query, items and clicked"),
        ('{"query": "a", "items": ["b", "b"], "clicked": []}', "item twice on its page"),
        (json.dumps({"query": "a", "items": list(range(101)), "clicked": []}), "page of more than 100 items"),
    ],
)
def test_bad_lines_are_counted_by_kind(line: str, kind: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log", PAGES)
    with path.open("ab") as file:
        file.write(b"\n" + line.encode("utf-8", "surrogateescape"))
    (bad,) = summarize_log(path, "sessions", max_bad=0.5).bad_lines
    assert (bad.kind, bad.count, bad.first) == (kind, 1, (6,))
    with pytest.raises(LogError, match=rf"^{path}: line 6: {kind}: found "):
        summarize_log(path, "sessions")


def test_bad_rows_of_parquet_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "table"
    polars.DataFrame({"query": ["a", None], "items": [["b"], ["c"]], "clicked": [[], None]}).write_parquet(path)
    (bad,) = summarize_log(path, "sessions", max_bad=0.5).bad_lines
    assert (bad.kind, bad.first) == ("not an object with query, items and clicked", (2,))
    assert bad.text.startswith("{'query': None")


def test_a_missing_column_and_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "table"
    polars.DataFrame({"query": ["a"], "items": [["b"]]}).write_parquet(path)
    with pytest.raises(LogError, match=rf"^{path}: has no column 'clicked'; expected query, items, clicked or "):
        summarize_log(path, "sessions")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(LogError, match=rf"^{path}: cannot be read as Parquet: "):
        summarize_log(path, "sessions")


def test_more_pages_than_a_batch_holds(tmp_path: Path) -> None:
    log = read_log(write_lines(tmp_path / "log", PAGES * 3000), "sessions")
    assert log.pages.weight.tolist() == [6000, 3000, 3000]


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3),
)
RECORD = st.dictionaries(st.sampled_from(["query", "items", "clicked", "other"]), VALUE)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.lists(RECORD | VALUE, max_size=20), st.integers(1, 50))
def test_fuzzed_records_never_crash(tmp_path: Path, records: list[Any], chunk: int) -> None:
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(record) + "\n" for record in [*PAGES, *records]))
    log = read_log(path, "sessions", max_bad=1.0, chunk=chunk)
    assert log.summary.pages + log.summary.bad == len(records) + len(PAGES)
