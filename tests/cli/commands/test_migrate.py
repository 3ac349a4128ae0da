"""``saferank migrate``."""

import lzma
from pathlib import Path

import pytest

from saferank.store.embedded.file import FILE_NAME
from tests.cli.command_line import call

OLD = Path(__file__).parents[2] / "store" / "first_edition" / "store.sqlite3.xz"
Capture = pytest.CaptureFixture[str]


def test_help_says_what_how_and_what_comes_out(capsys: Capture) -> None:
    code, out, _ = call(capsys, "migrate", "--help")
    assert code == 0
    for part in ("Usage: saferank migrate", "Example: saferank migrate", "What comes out:"):
        assert part in out


def test_a_store_is_taken_over_once(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / FILE_NAME).write_bytes(lzma.decompress(OLD.read_bytes()))
    code, out, err = call(capsys, "migrate", tmp_path, tmp_path / "new")
    assert (code, err) == (0, "")
    assert out.startswith("3 contexts, 644 pages (")
    assert "versions from 1" in out
    code, out, err = call(capsys, "migrate", tmp_path, tmp_path / "new")
    assert (code, out) == (2, "")
    assert "is not empty; name another store" in err


@pytest.mark.parametrize("new", ["new", "mysql://host/base"])
def test_what_cannot_be_used_is_one_line(tmp_path: Path, capsys: Capture, new: str) -> None:
    code, out, err = call(capsys, "migrate", tmp_path / "nothing", tmp_path / new if new == "new" else new)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
