"""``saferank export``: the log of a store, in three forms, with or without a running service."""

import json
from pathlib import Path

import pytest

from saferank.logs import read_log
from tests.cli.command_line import call
from tests.service.house import House, run


def filled(folder: Path) -> None:
    """A store with three closed pages, one of them clicked, one of another tenant, and an open one."""

    async def fill() -> None:
        made = House(folder)
        await made.start()
        page = await made.rank()
        await made.accept(page, "a")
        await made.rank()
        await made.rank(tenant="bank")
        await made.close()
        made.now = 4_000_000_000_000  # by the clock of this machine its window is still open
        await made.rank()
        await made.stop()

    run(fill())


def test_all_forms_and_what_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "store")
    everything = call(capsys, "export", tmp_path / "store")
    events = [json.loads(line) for line in everything.out.splitlines()]
    assert everything.code == 0 and [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert [event["kind"] for event in events].count("page") == 4
    for form in ("sessions", "ubi"):
        out = tmp_path / f"{form}.ndjson"
        assert call(capsys, "export", tmp_path / "store", "--format", form, "--out", out).code == 0
        summary = read_log(out, form, queries=1, page_length=None).summary
        assert (summary.pages, summary.clicks, summary.bad) == (3, 1, 0)
    ours = call(capsys, "export", tmp_path / "store", "--format", "sessions", "--tenant", "bank")
    assert [json.loads(line)["clicked"] for line in ours.out.splitlines()] == [[]]


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = call(capsys, "export", tmp_path / "none")
    assert nothing.code == 2 and nothing.err.count("\n") == 1 and "none" in nothing.err
    filled(tmp_path / "store")
    unknown = call(capsys, "export", tmp_path / "store", "--format", "csv")
    assert unknown.code == 2 and "events, sessions, ubi" in unknown.err
    known = "tenant 'bnak' has no contexts; tenants that have some: bank, default"
    for slip, said in (("--tenant", known), ("--arm", "unknown arm 'bnak'")):
        missed = call(capsys, "export", tmp_path / "store", slip, "bnak")
        assert (missed.code, missed.out) == (2, "") and said in missed.err
    mixed = call(capsys, "export", tmp_path / "store", "--arm", "holdout")
    assert (mixed.code, mixed.out) == (2, "") and "sessions and ubi have" in mixed.err
    nowhere = call(capsys, "export", tmp_path / "store", "--out", tmp_path / "no" / "file")
    assert nowhere.code in (1, 2) and nowhere.err.count("\n") == 1
