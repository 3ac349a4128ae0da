"""A store that was served by a policy of a plug-in is not read without it."""

from pathlib import Path

import pytest

from saferank.policies import POLICIES
from tests.cli.command_line import call
from tests.service.engine_harness import House, run


def test_a_policy_that_is_not_known_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill() -> None:
        house = House(tmp_path)
        await house.start()
        await house.rank("chairs")
        await house.stop()

    run(fill())
    monkeypatch.delitem(POLICIES, "kl-ucb-br")
    code, out, err = call(capsys, "replay", tmp_path)
    assert (code, out) == (2, "")
    assert "context 'chairs' is served by the policy 'kl-ucb-br', which is not known here" in err
    assert err.startswith("saferank: error: --plugin: ") and err.rstrip().endswith("name its file or module")
