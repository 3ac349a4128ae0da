"""Parquet with a mark for every document: query_id, query_doc_ids, clicks."""

from pathlib import Path

import polars
import pytest

from saferank.logs import LogError, read_log, summarize_log


def test_marks_are_clicks(tmp_path: Path) -> None:
    rows = {"query_id": [5, 5, 6], "query_doc_ids": [["a", "b"], ["a", "b"], ["c"]], "clicks": [[0, 1], [1, 1], [0]]}
    polars.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", "sessions", queries=2, page_length=None)
    assert log.queries == ("5", "6")
    assert log.summary.clicks_by_position == (1, 2)


def test_marks_that_do_not_fit_are_bad_rows(tmp_path: Path) -> None:
    rows = {"query_id": [5, 5, 6, 6], "query_doc_ids": [["a", "b"]] * 4, "clicks": [[0, 1], [1], [2, 0], None]}
    polars.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    summary = summarize_log(tmp_path / "log.parquet", "sessions", max_bad=1)
    assert (summary.pages, summary.bad) == (1, 3)


def test_other_columns_are_named(tmp_path: Path) -> None:
    polars.DataFrame({"query_id": [5], "clicks": [[0]]}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(LogError, match=r"no column 'query'; expected .* or query_id, query_doc_ids, clicks"):
        summarize_log(tmp_path / "log.parquet", "sessions")
