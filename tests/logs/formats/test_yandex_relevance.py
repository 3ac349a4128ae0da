"""The compiled reader of yandex-relevance."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.logs import LogError, read_log, summarize_log
from tests.logs.log_writing import RELEVANCE, tabbed, written

LOG = (
    "1 0 Q 500 3 10 11 12",
    "1 5 C 11",
    "1 9 Q 501 3 20 21",
    "1 12 C 11",  # not on the latest page: stray
    "1 13 C 21",
    "1 13 C 21",
    "2 4 C 10",  # no page
    "2 9 Q 500 4 10 11 12",
    "2 9 Q 500 4",
    "2 9 Q 500 x 10",
    "2 M 4 6",
    "2 9 T 500 3 10",
    "2 9 C 10 11",
    "2 9 Q 500 3 10 10",
    "2 9 Q 500 3 10,1",
)


@pytest.mark.parametrize("chunk", [1, 13, 1 << 20])
def test_every_case_by_hand(chunk: int, tmp_path: Path) -> None:
    log = read_log(written(tmp_path, *LOG), RELEVANCE, max_bad=1.0, chunk=chunk)
    assert log.queries == ("500", "501")
    assert log.pages.items.tolist() == [[0, 1, 2], [3, 4, -1], [0, 1, 2]]
    assert log.pages.clicks.tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert (log.summary.sessions, log.summary.pages, log.summary.clicks, log.summary.stray_clicks) == (2, 3, 2, 1)
    assert {bad.kind: bad.first for bad in log.summary.bad_lines} == {
        "click without its page": (7,),
        "wrong number of fields": (9, 13),
        "not a number": (10, 11, 15),
        "unknown record type": (12,),
        "item twice on its page": (14,),
    }


def test_equal_pages_are_one_with_a_weight(tmp_path: Path) -> None:
    lines = [line for n in range(50) for line in (f"{n} 0 Q 1 2 7 8 9", f"{n} 1 C 8")]
    pages = read_log(written(tmp_path, *lines), RELEVANCE).pages
    assert (pages.weight.tolist(), pages.clicks.tolist()) == ([50], [[0, 1, 0]])


FIELD = st.sampled_from(["0", "1", "2", "Q", "C", "M", "", "x", "1,2", "\r", "9" * 20])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.lists(st.lists(FIELD, max_size=8).map("\t".join), min_size=1, max_size=20), st.integers(1, 60))
def test_fuzzed_lines_are_counted_whatever_the_chunk(tmp_path: Path, lines: list[str], chunk: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(tabbed("1 0 Q 1 2 7 8 9") + "\n".join(lines).encode())
    one = summarize_log(path, RELEVANCE, max_bad=1.0)
    assert one == summarize_log(path, RELEVANCE, max_bad=1.0, chunk=chunk)
    assert one.lines == 1 + len(lines) - (lines[-1] == "")
    if one.bad:
        with pytest.raises(LogError, match=rf"^{path}: line \d+: "):
            summarize_log(path, RELEVANCE, max_bad=0.0)
