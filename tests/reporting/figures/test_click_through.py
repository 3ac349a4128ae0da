"""The figure of click-through is drawn for everything that an evaluation can bring, and written whole."""

import errno
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from matplotlib.figure import Figure

from saferank.fitting import ESTIMATORS
from saferank.fitting.evaluation import Evaluation
from saferank.reporting.figures.click_through import click_through_figure

PNG = b"\x89PNG\r\n\x1a\n"


def found(shown: list[int]) -> Evaluation:
    n = len(shown)
    column = np.linspace(0.5, 0.1, n)
    return Evaluation(-1.5, 1.3, 1 + column, 0.0, np.array(shown), column, column / 2)


@pytest.mark.parametrize(
    "evaluations",
    [
        {"pbm": found([10])},
        {name: found([10, 9, 9, 3]) for name in ESTIMATORS},
        {"cm": found([10, 5, 0, 0])},
        {"dbn": found([7] * 100)},
    ],
    ids=["one position", "all models", "positions without pages", "a long page"],
)
def test_it_is_a_png(evaluations: dict[str, Evaluation], tmp_path: Path) -> None:
    click_through_figure(evaluations, tmp_path / "ctr.png")
    assert (tmp_path / "ctr.png").read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["ctr.png"]


def test_a_full_disk_leaves_the_old_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Figure, file: BinaryIO, format: str) -> None:
        file.write(PNG)
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "ctr.png").write_text("old")
    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        click_through_figure({"pbm": found([10])}, tmp_path / "ctr.png")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("ctr.png", "old")]
