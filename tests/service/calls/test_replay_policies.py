"""A store that was served by a policy of a plug-in is not read without it."""

from pathlib import Path

import pytest
from msgspec import structs

from saferank.policies import POLICIES
from tests.cli.command_line import call
from tests.service.house import House, T, run


def test_a_policy_that_is_not_known_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill() -> None:
        house = House(tmp_path)
        await house.start()
        await house.rank("chairs")
        await house.stop()

    run(fill())
    with monkeypatch.context() as without:
        without.delitem(POLICIES, "kl-ucb-br")
        refused(tmp_path, capsys, "kl-ucb-br")


def test_a_policy_that_a_reset_took_is_named_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill() -> None:
        house = House(tmp_path)
        await house.start()
        await house.rank("chairs")
        house.settings = structs.replace(house.settings, policy="bubble-rank")
        await house.restart()
        await house.server.reset(T, "chairs", "another policy")
        await house.stop()

    run(fill())
    assert call(capsys, "replay", tmp_path)[0] == 0
    monkeypatch.delitem(POLICIES, "bubble-rank")
    refused(tmp_path, capsys, "bubble-rank")


def refused(folder: Path, capsys: pytest.CaptureFixture[str], policy: str) -> None:
    code, out, err = call(capsys, "replay", folder)
    assert (code, out) == (2, "")
    assert f"context 'chairs' is served by the policy {policy!r}, which is not known here" in err
    assert err.startswith("saferank: error: --plugin: ") and err.rstrip().endswith("name its file or module")
