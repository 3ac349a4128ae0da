"""The compiled reader of yandex-personalized: by hand, and equal to the literal one whatever the bytes and chunks."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.logs import ClickLog, LogError, read_log, summarize_log, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from tests.logs.log_writing import PERSONALIZED, page, same, tabbed, written
from tests.reference.users import logs as reference

TEN = "1 2 3 4 5 6 7 8 9 10"
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


def read(path: Path, queries: int = 100, chunk: int = 1 << 20) -> ClickLog:
    return read_log(path, PERSONALIZED, queries=queries, max_bad=1.0, chunk=chunk)


def as_counted(log: ClickLog) -> dict[tuple[int, tuple[int, ...], tuple[int, ...]], int]:
    """The pages as the literal reader gives them."""
    counted = {}
    for query, items, clicks, weight in zip(*log.pages, strict=True):
        shown = [int(log.pairs[item][1]) for item in items if item >= 0]
        assert all(log.pairs[item][0] == query for item in items if item >= 0)
        key = (int(log.queries[query]), tuple(shown), tuple(clicks[: len(shown)].tolist()))
        assert key not in counted
        counted[key] = int(weight)
    return counted


def assert_equal_to_the_reference(text: bytes, path: Path, queries: int, chunk: int) -> None:
    path.write_bytes(text)
    expected = reference.read(text)
    shown = [one for one in expected.pages if not one.test]
    if not shown:
        with pytest.raises(LogError):
            read(path, queries, chunk)
        return
    log = read(path, queries, chunk)
    chosen = reference.frequent(expected.pages, queries)
    counted = reference.distinct(expected.pages, chosen)
    assert log.queries == tuple(map(str, chosen))
    assert list(as_counted(log).items()) == list(counted.items())
    assert log.rankings == tuple(
        None if best is None else tuple(map(str, best))
        for best in (reference.ranking(expected.pages, query) for query in chosen)
    )
    summary = log.summary
    assert (summary.lines, summary.sessions, summary.pages) == (expected.lines, expected.sessions, len(shown))
    assert summary.test_pages == len(expected.pages) - len(shown)
    assert (summary.stray_clicks, summary.test_clicks) == (expected.stray_clicks, expected.test_clicks)
    assert summary.queries == len({one.query for one in shown})
    assert summary.clicks == sum(summary.clicks_by_position) == sum(sum(one.clicks()) for one in shown)
    assert summary.pages_without_click == sum(not one.clicked for one in shown)
    found = {bad.kind: (bad.count, list(bad.first)) for bad in summary.bad_lines}
    assert found == {kind: (len(lines), lines[:5]) for kind, lines in expected.bad.items()}


EVERYTHING = (
    "1 M 3 77",
    page(1, 0, 500, "10 11 12"),
    "1 5 C 0 11",
    page(1, 1, 501, "20 21", time=9),
    "1 12 C 0 12",  # of an earlier page, after a later one
    "1 3 C 0 11",  # again, and earlier in time
    "1 13 C 0 99",  # stray
    "1 14 C 1 20",
    "2 M 3 78",
    page(2, 0, 500, "10 11 12", kind="T"),
    "2 4 C 0 10",  # on a T page
    page(2, 1, 500, "10 11 12"),
    "2 9 C 5 10",  # no such page
    "1 20 C 0 10",  # the session is over
    "1 20 X 0 10",
    "1 20 C 0",
    "1 20 C 0 10 3",
    "1 20 C x 10",
    page(3, 0, 500, "10 11 10"),
    "3 0 Q 0 500 5,6",
    "3 0 Q 0 500 5,6 10",
    "",
)


def test_every_case_by_hand(tmp_path: Path) -> None:
    log = read(written(tmp_path, *EVERYTHING))
    assert log.queries == ("500", "501")
    assert log.pairs == ((0, "10"), (0, "11"), (0, "12"), (1, "20"), (1, "21"))
    assert log.pages.query.tolist() == [0, 1, 0]
    assert log.pages.items.tolist() == [[0, 1, 2], [3, 4, -1], [0, 1, 2]]
    assert log.pages.clicks.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert log.pages.weight.tolist() == [1, 1, 1]
    assert [array.dtype for array in log.pages] == [np.int64, np.int64, np.uint8, np.int64]
    assert log.rankings == (None, None)
    summary = log.summary
    assert (summary.lines, summary.sessions, summary.pages, summary.test_pages) == (22, 3, 3, 1)
    assert (summary.clicks, summary.stray_clicks, summary.test_clicks) == (3, 1, 1)
    assert (summary.shown_by_position, summary.clicks_by_position) == ((3, 3, 2), (1, 1, 1))
    assert summary.abandonment == pytest.approx(1 / 3)
    assert {bad.kind: (bad.count, bad.first) for bad in summary.bad_lines} == {
        "click without its page": (2, (13, 14)),
        "unknown record type": (1, (15,)),
        "wrong number of fields": (3, (16, 17, 20)),
        "not a number": (2, (18, 21)),
        "item twice on its page": (1, (19,)),
    }
    assert summary.bad == 9
    assert summary.bad_lines[0].text == "2 9 C 5 10"


def test_the_most_frequent_ranking_of_exactly_ten_items(tmp_path: Path) -> None:
    other, longer = "2 1 3 4 5 6 7 8 9 10", TEN + " 11"
    shown = [longer, longer, longer, other, TEN, TEN, other, "1 2"]
    log = read(written(tmp_path, *(page(n, 0, 9, items) for n, items in enumerate(shown))))
    assert log.rankings == (tuple(other.split()),)  # as often as TEN, and seen first
    assert log.pages.weight.tolist() == [3, 2, 2, 1]


def test_the_most_frequent_queries_and_of_equals_the_first(tmp_path: Path) -> None:
    path = written(tmp_path, *(page(n, 0, query, "1 2") for n, query in enumerate([4, 3, 3, 2, 2, 1])))
    assert read(path, queries=3).queries == ("3", "2", "4")
    assert read(path, queries=3).summary.warnings == ()
    (warning,) = read(path, queries=5).summary.warnings
    assert warning == "found 4 queries, fewer than the 5 asked for"


def test_ids_have_up_to_64_bits(tmp_path: Path) -> None:
    largest = 2**64 - 1
    path = written(tmp_path, page(largest, largest, largest, f"{largest} 0"), f"{largest} 0 C {largest} {largest}")
    log = read(path)
    assert (log.queries, log.pairs) == ((str(largest),), ((0, str(largest)), (0, "0")))
    assert log.pages.clicks.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    "number", ["18446744073709551616", "20000000000000000000", "1" * 21, "-1", "+1", "1.5", "x", ""]
)
def test_what_is_not_a_number(number: str, tmp_path: Path) -> None:
    text = tabbed(page(1, 0, 2, "1")) + b"1\t0\tC\t0\t" + number.encode() + b"\n"
    assert_equal_to_the_reference(text, tmp_path / "log", 10, 1 << 20)
    (bad,) = summarize_log(tmp_path / "log", PERSONALIZED, max_bad=1.0).bad_lines
    assert (bad.kind, bad.first) == ("not a number", (2,))


def test_a_page_of_more_than_a_hundred_items_is_left_out(tmp_path: Path) -> None:
    hundred = " ".join(map(str, range(100)))
    text = tabbed(page(1, 0, 1, hundred), "1 0 C 0 99", page(1, 1, 1, hundred + " 100"))
    assert_equal_to_the_reference(text, tmp_path / "log", 1, 1 << 20)
    assert read(tmp_path / "log").pages.clicks.sum(axis=0).tolist() == [0] * 99 + [1]


def test_a_session_may_be_as_long_as_the_batch_and_no_longer(tmp_path: Path) -> None:
    lines = [page(1, serp, serp % 3, "1 2") for serp in range(4096)]
    more = [page(1, 4096, 1, "1 2"), "1 0 C 0 2", page(2, 0, 1, "1 2"), "2 0 C 0 1"]
    assert_equal_to_the_reference(tabbed(*lines, *more), tmp_path / "log", 3, 1 << 20)
    assert read(tmp_path / "log").summary.bad == 1


def test_many_short_sessions_pass_through_the_batch(tmp_path: Path) -> None:
    lines = [line for n in range(6000) for line in (page(n, 0, n % 5, "1 2 3"), f"{n} 0 C 0 {n % 3 + 1}")]
    assert_equal_to_the_reference(tabbed(*lines), tmp_path / "log", 5, 1 << 22)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_do_not_matter(chunk: int, tmp_path: Path) -> None:
    assert_equal_to_the_reference(tabbed(*EVERYTHING), tmp_path / "log", 2, chunk)


@pytest.mark.parametrize("model", ["pbm", "dbn"])
def test_equal_to_the_reference_on_a_synthetic_log(model: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_synthetic_log(path, planted_instances(7, model), sessions=1500, seed=3)
    for queries, chunk in ((3, 1 << 20), (100, 5000)):
        assert_equal_to_the_reference(path.read_bytes(), path, queries, chunk)


def test_gzip_is_plain(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    write_synthetic_log(plain, planted_instances(4, "cm"), sessions=300)
    half = len(plain.read_bytes()) // 2
    members = (plain.read_bytes()[:half], plain.read_bytes()[half:])
    packed.write_bytes(b"".join(map(gzip.compress, members)))  # of several members, as parallel packers write it
    assert same(read(plain), read(packed, chunk=999))


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_ends_of_lines(ending: str, tmp_path: Path) -> None:
    text = ending.join(tabbed(*EVERYTHING[:9]).decode().split("\n"))
    assert_equal_to_the_reference(text.rstrip("\r\n").encode(), tmp_path / "log", 2, 16)
    assert read(tmp_path / "log").summary.bad == 0


FIELD = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3",
        "M",
        "Q",
        "T",
        "C",
        "1,7",
        "2,7",
        "3,8",
        "",
        "x",
        ",",
        "1,",
        "Q1",
        "-1",
        "1 ",
        "\r",
        "9" * 20,
        "\0",
    ]
)
LINE = st.one_of(
    st.lists(FIELD, max_size=9).map("\t".join),
    st.builds(
        "{}\t0\tQ\t{}\t{}\t5\t{}".format,
        *(st.sampled_from("12"),) * 3,
        st.sampled_from(["1,7\t2,7", "3,7", "1,7\t1,7"]),
    ),
    st.builds("{}\t0\tC\t{}\t{}".format, *(st.sampled_from("12"),) * 3),
    st.text(st.characters(max_codepoint=255, exclude_characters="\n"), max_size=12),
)


@QUIET
@given(st.lists(LINE, min_size=1, max_size=25), st.integers(1, 40), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_fuzzed_lines_are_read_as_by_the_reference(
    tmp_path: Path, lines: list[str], chunk: int, ending: str, ends: bool
) -> None:
    sound = tabbed(page(1, 1, 1, "1 2"), "1 0 C 1 2").decode().replace("\n", ending)
    text = (sound * 60 + ending.join(lines) + ending * ends).encode("latin-1")
    assert_equal_to_the_reference(text, tmp_path / "log", 2, chunk * 20)


@QUIET
@given(st.binary(max_size=200), st.sampled_from(["yandex-personalized", "yandex-relevance", "sessions"]))
def test_any_bytes_give_a_summary_or_an_error_that_names_the_file(tmp_path: Path, text: bytes, form: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    try:
        assert summarize_log(path, form, max_bad=1.0).pages > 0
    except LogError as problem:
        assert str(problem).startswith(f"{path}: ")
        assert "\n" not in str(problem)
