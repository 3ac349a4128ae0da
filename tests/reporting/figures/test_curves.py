"""The figure is drawn for everything that an experiment can bring, and written whole."""

import errno
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from matplotlib.figure import Figure

from saferank.reporting.figures.curves import curves_figure
from saferank.reporting.figures.panels import inline_svg, spread, write_figure, write_formats
from saferank.reporting.frames import means_of
from saferank.reporting.looks import dark_colours, looks_of
from saferank.reporting.pooling import pooled
from saferank.simulation.results import Result
from tests.reporting.planted import curve, true_results

PNG = b"\x89PNG\r\n\x1a\n"
PAPER = list(true_results().values())


@pytest.mark.parametrize(
    "results",
    [
        [curve("kl-ucb-br")],
        [curve(p, m, violations=3) for m in ("pbm", "cm") for p in ("original", "top-rank", *"abcdefgh")],
        [curve("original", stderr=None)],
        [curve("original", rounds=(1,))],
        [curve("original", rounds=(7,))],
        [curve("original", regret=0.0)],
        [curve("top-rank", regret=-1e-12, violations=1e-3)],
        [curve("top-rank", violations=1e12, stderr=1e12)],
        [curve("$x_{", "$\\frac{")],
        [curve("\ud800 \u6f22\u5b57\n<b>", "\u6f22")],
    ],
    ids=[
        "one", "many", "single repetition", "single round", "single checkpoint", "all zero", "nearly zero", "huge",
        "dollars", "another script",
    ],
)  # fmt: skip
def test_the_figure_is_a_png(results: list[Result], tmp_path: Path) -> None:
    write_figure(curves_figure(pooled(means_of(results))), tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["regret.png"]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for panel in figure.axes for text in panel.texts]


def test_curves_are_named_at_their_ends_in_every_panel() -> None:
    figure = curves_figure(pooled(means_of(PAPER)))
    for name in ("KL-UCB-BR", "BubbleRank", "TopRank", "UniRank", "OriginalRank"):
        assert texts(figure).count(name) == 4
    assert [panel.get_title() for panel in figure.axes[:2]] == ["PBM", "CM"]


def test_curves_that_are_zero_have_a_lane_each() -> None:
    below = curves_figure(pooled(means_of([r for r in PAPER if r.model == "pbm"]))).axes[1]
    artists: list[Any] = below.get_children()
    lanes = {float(line.get_ydata()[0]) for line in artists if _is_lane(line)}
    assert len(lanes) == 3  # kl-ucb-br, bubble-rank, original
    assert all(0 < lane < 0.3 for lane in lanes)
    assert "0" in [text.get_text() for text in below.texts]


def _is_lane(artist: Any) -> bool:
    return (
        hasattr(artist, "get_ydata")
        and len(artist.get_ydata()) > 2
        and artist.get_ydata()[0] > 0 == np.ptp(artist.get_ydata())
    )


def test_all_numbers_that_are_not_zero_are_inside_the_axes() -> None:
    curves = pooled(means_of([result for result in PAPER if result.model == "pbm"]))
    for panel, column in zip(curves_figure(curves).axes, ("regret", "violations"), strict=True):
        low, high = panel.get_ylim()
        ends = [getattr(curve, column).end.mean for curve in curves]
        assert all(low < end < high for end in ends if end)


def test_known_policies_keep_their_colours_whatever_else_is_drawn() -> None:
    looks = looks_of(["mine", "top-rank", "yours"])
    assert looks["top-rank"] == looks_of(["top-rank"])["top-rank"]
    assert len({looks[name] for name in ("mine", "top-rank", "yours", "safe-draw")}) == 4


def test_every_look_differs_in_colour_line_and_marker() -> None:
    looks = [looks_of(list("abcd"))[name] for name in (*looks_of([]), *"abcd")]
    for feature in ("colour", "in_the_dark", "line", "marker"):
        assert len({getattr(look, feature) for look in looks}) == len(looks)


def test_the_rows_of_a_sweep_share_the_colour_of_their_policy_and_no_look() -> None:
    rows = [f"{policy} K={k}" for k in range(40) for policy in ("kl-ucb-br", "top-rank", "mine")]
    looks = looks_of(["kl-ucb-br", *rows])
    assert len({looks[row] for row in ("kl-ucb-br", *rows)}) == len(rows) + 1
    assert {looks[row].colour for row in rows if row.startswith("top-rank")} == {looks["top-rank"].colour}


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", looks_of(list("abcd")).values(), ids=lambda look: look.colour)
def test_lines_stand_out_from_light_and_dark_pages(look: Any) -> None:
    assert _contrast(look.colour, "#ffffff") >= 3
    assert _contrast(look.in_the_dark, "#17181d") >= 3


def test_every_format_is_written_and_the_same_every_time(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_formats(curves_figure(pooled(means_of([r for r in PAPER if r.model == "cm"]))), folder, "figure")
    starts = {"figure.png": PNG, "figure.svg": b"<?xml", "figure.pdf": b"%PDF"}
    for name, start in starts.items():
        assert (tmp_path / "a" / name).read_bytes().startswith(start)
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_inline_figure_takes_the_colours_of_the_page_and_keeps_its_ids_apart() -> None:
    results = [curve("--><script>alert(1)</script>", "<b>"), curve("kl-ucb-br", "<b>")]
    svg = inline_svg(curves_figure(pooled(means_of(results))), "mine")
    assert svg.startswith("<svg viewBox=")
    assert not any(colour in svg for colour in dark_colours())
    assert 'id="mine-' in svg and 'id="figure' not in svg
    assert "script" not in svg and "<!--" not in svg


def test_names_are_moved_apart_and_stay_in_order() -> None:
    placed = spread([0.9, 1.0, 0.99, 0.0, 0.01], 0.1)
    assert sorted(placed) == [placed[i] for i in (3, 4, 0, 2, 1)]
    assert np.diff(sorted(placed)).min() >= 0.1 - 1e-9
    assert min(placed) >= 0 and max(placed) <= 1 + 1e-9


def test_a_full_disk_leaves_the_old_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Figure, file: BinaryIO, **options: object) -> None:
        file.write(PNG)
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "regret.png").write_text("old")
    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        write_figure(curves_figure(pooled(means_of([curve("original")]))), tmp_path / "regret.png")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("regret.png", "old")]
