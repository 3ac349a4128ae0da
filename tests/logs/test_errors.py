"""What cannot be read is said in one line that names the file, the line where it applies, and what was expected."""

import gzip
import os
from pathlib import Path

import pytest

from saferank.logs import LogError, read_log, summarize_log
from saferank.logs.formats import byte_chunks
from tests.logs.log_writing import PERSONALIZED, RELEVANCE, page, tabbed

SOUND = tabbed(*(page(n, 0, 1, "1 2 3") for n in range(1000)))
OTHER = tabbed(*(f"{n} 0 Q 1 2 7 8 9" for n in range(10)))
NOISE = bytes(range(256)) * 40


@pytest.mark.parametrize(
    ("content", "form", "message"),
    [
        (b"", PERSONALIZED, "is empty; expected tab-separated records like "),
        (b"\n \n", "sessions", "is empty; expected JSON objects, one a line, like "),
        (gzip.compress(b"", mtime=0), RELEVANCE, "is empty; expected tab-separated records like "),
        (NOISE, PERSONALIZED, "line 1: found binary data, expected tab-separated records"),
        (b"PK\x03\x04" + NOISE, PERSONALIZED, "is packed with zip; unpack it, or pack it with gzip"),
        (b"PAR1" + NOISE, PERSONALIZED, "looks like Parquet, which can be read as format sessions"),
        (gzip.compress(b"PAR1" + NOISE, mtime=0), "sessions", "looks like Parquet"),
        (OTHER, PERSONALIZED, "line 1: expected tab-sep.*; the file looks like format yandex-relevance"),
        (SOUND, RELEVANCE, "line 1: expected tab-sep.*; the file looks like format yandex-personalized"),
        (SOUND, "sessions", "line 1: expected JSON.*; the file looks like format yandex-personalized"),
        (b'{"query": "a", "items": ["b"], "clicked": []}', RELEVANCE, "line 1: .* looks like format sessions"),
        (tabbed("1 M 2 3", "2 M 2 4"), PERSONALIZED, "found no page in 2 lines, expected tab-separated"),
        (b"some prose\nand more of it\n", PERSONALIZED, "line 1: not a number: found 'some prose', expected tab-sep"),
        (
            SOUND[:-1] + b"9",
            "other",
            "unknown format 'other'; known ones: yandex-personalized, yandex-relevance, sessions",
        ),
    ],
)
def test_what_is_wrong_with_a_file(content: bytes, form: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    for read in (summarize_log, read_log):
        with pytest.raises(LogError, match=f"^{path}: {message}") as problem:
            read(path, form)
        assert len(str(problem.value).splitlines()) == 1


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"none: cannot be read: No such file or directory$"):
        summarize_log(tmp_path / "none", PERSONALIZED)
    with pytest.raises(LogError, match=f"^{tmp_path}: is a folder; expected a log file$"):
        summarize_log(tmp_path, "sessions")


def test_a_bad_line_is_shown_and_the_share_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(SOUND + b"1\tx\n" * 11)
    expected = (
        r": line 1001: not a number: found '1 x', expected .*; 11 of 1,011 lines are bad, more than max_bad=0.01$"
    )
    with pytest.raises(LogError, match=expected):
        summarize_log(path, PERSONALIZED)
    assert summarize_log(path, PERSONALIZED, max_bad=0.02).bad == 11
    path.write_bytes(SOUND + b"1\tx\n" * 10)
    assert str(summarize_log(path, PERSONALIZED).bad_lines[0]) == (
        "not a number: 10 (line 1001, 1002, 1003, 1004, 1005, ...)"
    )


@pytest.mark.parametrize("form", [PERSONALIZED, "sessions"])
def test_gzip_that_is_cut_off_or_corrupt(form: str, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    record = b'{"query": "%d", "items": ["b"], "clicked": []}\n' if form == "sessions" else b"%d\t0\tQ\t0\t1\t1\t1,1\n"
    text = b"".join(record % n for n in range(40_000))
    packed = gzip.compress(text)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(
        LogError, match=rf"^{path}: line [0-9]{{4,}}: the gzip data end in the middle; the file is cut off"
    ):
        summarize_log(path, form, chunk=1 << 16)
    path.write_bytes(packed[: len(packed) // 2] + os.urandom(1000) + packed[len(packed) // 2 + 1000 :])
    with pytest.raises(LogError, match=rf"^{path}: line [0-9]+: the gzip data are corrupt"):
        read_log(path, form)
    path.write_bytes(packed[:15])
    with pytest.raises(LogError, match=rf"^{path}: line 1: the gzip data end in the middle"):
        summarize_log(path, form)


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_chunks, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "log"
    path.write_bytes(SOUND + b"x" * (3 << 20))
    with pytest.raises(LogError, match=f"^{path}: line 1001: a line of more than 1 MB; expected lines of text$"):
        summarize_log(path, PERSONALIZED, chunk=1 << 18)


def test_a_path_of_two_lines_makes_an_error_of_one(tmp_path: Path) -> None:
    with pytest.raises(LogError) as problem:
        summarize_log(tmp_path / "two\nlines", PERSONALIZED)
    assert "\n" not in str(problem.value)


def test_fewer_than_one_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="queries is 0, expected at least 1"):
        read_log(tmp_path, PERSONALIZED, queries=0)
