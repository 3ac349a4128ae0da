"""The log of a store as a file: complete, or the old file stays."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from saferank.errors import ArgumentError, UsageError
from saferank.service.calls.export import export
from tests.cli.commands.test_export import filled


def test_a_file_and_an_open_file_have_the_same_lines(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    opened = io.BytesIO()
    export(str(tmp_path / "store"), "events", None, opened)
    export(str(tmp_path / "store"), "events", None, tmp_path / "events.ndjson")
    assert (tmp_path / "events.ndjson").read_bytes() == opened.getvalue()
    assert opened.getvalue().count(b"\n") > 3


def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "store")
    out = tmp_path / "events.ndjson"
    out.write_text("old")

    def broken(*arguments: object) -> Iterator[str]:
        yield "{}"
        raise RuntimeError("in the middle")

    monkeypatch.setattr("saferank.service.calls.export.lines_of", broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        export(str(tmp_path / "store"), "events", None, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.ndjson", "store"]


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="format: unknown format 'csv'; known ones: events, sessions, ubi"):
        export(str(tmp_path), "csv", None, tmp_path / "out")
    with pytest.raises(UsageError, match="nothing"):
        export(str(tmp_path / "nothing"), "events", None, tmp_path / "out")
    assert not (tmp_path / "out").exists()
