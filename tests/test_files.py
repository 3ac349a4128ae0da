"""Files are replaced at once; links stay links, devices stay devices."""

import os
import stat
from pathlib import Path

import pytest

from saferank.errors import ArgumentError
from saferank.files import JsonFileError, check_output_file, output_folder, read_json, write_atomically


def test_a_symbolic_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_link_to_nothing_makes_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "later.json")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "later.json").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_made_for_failed_work_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), output_folder(tmp_path / "a" / "b"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ArgumentError, match="there is a file of that name"), output_folder(tmp_path / "file"):
        pass


def test_a_link_to_a_pipe_is_written_to(tmp_path: Path) -> None:
    """What /dev/stdout is in a pipe: a link whose target has a name that no file has."""
    reading, writing = os.pipe()
    link = tmp_path / "stdout"
    link.symlink_to(f"/proc/self/fd/{writing}")
    if not link.exists():
        pytest.skip("this system has no /proc/self/fd")
    try:
        write_atomically(link, "new")
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_control_character_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"a": "\t"}')
    with pytest.raises(JsonFileError, match="Invalid control character at line 1, column 8"):
        read_json(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("name", "beside", "message"),
    [
        ("-", False, "out: found -, expected the name of a file, or /dev/stdout"),
        ("-", True, "out: found -, expected the name of a file$"),
        ("folder", False, "is a folder, expected the name of a file"),
        ("pipe", True, "is a device, and other files are written beside the first; name a file"),
    ],
)
def test_names_that_no_output_file_has(
    name: str, beside: bool, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match=message):
        check_output_file(Path(name), beside=beside)


def test_an_output_file_may_be_a_pipe_or_a_new_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_output_file(tmp_path / "pipe")
    check_output_file(tmp_path / "file", beside=True)
