"""``saferank forget``."""

from pathlib import Path

import pytest

from tests.cli.command_line import call
from tests.service.house import House, run

Capture = pytest.CaptureFixture[str]


def filled(folder: Path) -> None:
    async def fill() -> None:
        house = House(folder)
        await house.start()
        for name in ("ann", "bob"):
            await house.accept(await house.rank(session_id=name), event_id=name)
        await house.close()
        await house.stop()

    run(fill())


def test_help_says_what_how_and_what_comes_out(capsys: Capture) -> None:
    code, out, _ = call(capsys, "forget", "--help")
    assert code == 0
    for part in ("Usage: saferank forget", "Example: saferank forget", "What comes out:"):
        assert part in out


def test_a_session_is_forgotten_once(tmp_path: Path, capsys: Capture) -> None:
    filled(tmp_path)
    asked = ("forget", tmp_path, "--tenant", "default", "--session", "ann")
    code, out, err = call(capsys, *asked)
    assert (code, err) == (0, "")
    assert out.startswith("removed 1 pages of 1 contexts, and 1 event ids\nwhat stays: ")
    assert call(capsys, *asked) == (0, "the log has no page of it: nothing was removed\n", "")
    replay = call(capsys, "replay", tmp_path)
    assert replay.code == 0 and "deleted (keep_days or forget)" in replay.out and "no page is missing" in replay.out


def test_mistakes_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    filled(tmp_path / "store")
    for store, *options in (
        ("none", "--tenant", "default", "--session", "ann"),
        ("store", "--tenant", "default"),
        ("store", "--session", "ann"),
        ("store", "--tenant", "other", "--source", "ann"),
    ):
        code, out, err = call(capsys, "forget", tmp_path / store, *options)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert "log.sqlite3: tenant 'other' has no contexts" in err
    assert not (tmp_path / "none").exists()
