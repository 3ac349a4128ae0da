"""``saferank backup`` and ``saferank restore``."""

from pathlib import Path

import pytest

from tests.cli.command_line import call
from tests.service.house import House, run

Capture = pytest.CaptureFixture[str]


def filled(folder: Path) -> None:
    async def fill() -> None:
        house = House(folder)
        await house.start()
        await house.rank()
        await house.stop()

    run(fill())


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_help_says_what_how_and_what_comes_out(command: str, capsys: Capture) -> None:
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    for part in (f"Usage: saferank {command}", f"Example: saferank {command}", "What comes out:"):
        assert part in out


def test_there_and_back(tmp_path: Path, capsys: Capture) -> None:
    filled(tmp_path / "store")
    file, new = tmp_path / "file", tmp_path / "new"
    code, out, err = call(capsys, "backup", tmp_path / "store", file)
    assert (code, err) == (0, "")
    assert out == f"{file}: 1 contexts, 1 pages, 0 versions, 1 operations, and the keys of the store\n"
    code, out, err = call(capsys, "restore", file, new)
    assert (code, err) == (0, "") and "1 contexts, 1 pages" in out
    assert call(capsys, "replay", new).code == 0


def test_mistakes_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    filled(tmp_path / "store")
    file = tmp_path / "file"
    wrong = [call(capsys, "backup", tmp_path / "none", file), call(capsys, "restore", file, tmp_path / "new")]
    assert call(capsys, "backup", tmp_path / "store", file).code == 0
    wrong.append(call(capsys, "restore", file, tmp_path / "store"))
    for outcome in wrong:
        assert outcome.code == 2 and outcome.err.count("\n") == 1 and str(tmp_path) in outcome.err
    assert call(capsys, "backup", tmp_path / "store", tmp_path / "no" / "file").code == 1
