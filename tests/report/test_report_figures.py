"""The figure is drawn for everything that an experiment can bring, and written whole."""

import errno
from pathlib import Path
from typing import BinaryIO

import pytest
from matplotlib.figure import Figure

from saferank.report import figures
from saferank.report.figures import regret_figure
from saferank.simulation.results import Result

PNG = b"\x89PNG\r\n\x1a\n"


def curve(model: str, policy: str, stderr: float | None = 0.5, rounds: tuple[int, ...] = (1, 10, 100)) -> Result:
    column = [float(r) for r in rounds]
    errors = [None] * len(rounds) if stderr is None else [stderr] * len(rounds)
    return Result("q", model, policy, None, 5, 10, 3, list(rounds), column, errors, column, errors, None)


@pytest.mark.parametrize(
    "results",
    [
        [curve("pbm", "kl-ucb-br")],
        [curve(m, p) for m in ("pbm", "cm", "dcm") for p in ("original", "top-rank", "mine", "yours", "a", "b", "c")],
        [curve("pbm", "original", stderr=None)],
        [curve("pbm", "original", rounds=(1,))],
        [curve("pbm", "original", rounds=(7,))],
    ],
    ids=["one", "many", "single repetition", "single round", "single checkpoint"],
)
def test_the_figure_is_a_png(results: list[Result], tmp_path: Path) -> None:
    regret_figure(results, tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["regret.png"]


def test_known_policies_keep_their_colours_whatever_else_is_drawn() -> None:
    looks = figures._looks(["mine", "top-rank", "yours"])
    assert looks["top-rank"] == figures._looks(["top-rank"])["top-rank"]
    assert len({looks[name] for name in ("mine", "top-rank", "yours")}) == 3


def test_a_full_disk_leaves_the_old_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Figure, file: BinaryIO, format: str) -> None:
        file.write(PNG)
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "regret.png").write_text("old")
    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        regret_figure([curve("pbm", "original")], tmp_path / "regret.png")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("regret.png", "old")]
