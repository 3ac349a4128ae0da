"""The example of docs/researchers/add-a-click-model.md keeps the contract and is played from its instance file."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from saferank.checks import check_click_model
from saferank.click_models import CLICK_MODELS
from tests.cli.command_line import call

PAGE = Path(__file__).parents[2] / "docs" / "researchers" / "add-a-click-model.md"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Path]:
    """A folder with the two files of the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, language in (("tired_users.py", "python"), ("tired.json", "json")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / name).write_text(block, encoding="utf-8")
    yield tmp_path
    CLICK_MODELS.pop("tired", None)
    sys.modules.pop("tired_users", None)


def test_it_is_played_as_the_page_says(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--policies", "original", "--positions", 2, "--rounds", 50, "--repetitions", 1, "--out", files / "out")
    plugin = ("--plugin", files / "tired_users.py")
    code, out, err = call(capsys, "simulate", files / "tired.json", *plugin, *options)
    assert code == 0, err
    assert "tired" in out
    check_click_model("tired", n_positions=2)
    command = "saferank simulate tired.json --plugin tired_users.py --policies kl-ucb-br,original --positions 2"
    assert command in PAGE.read_text(encoding="utf-8")
