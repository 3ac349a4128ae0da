"""Figures as a reader wants them: axes, width, first round, names."""

import warnings
from pathlib import Path

import pytest

from saferank.errors import ArgumentError
from saferank.reporting.figures.curves import curves_figure
from saferank.reporting.figures.panels import FigureOptions
from saferank.reporting.frames import means_of
from saferank.reporting.looks import labels, policy_name
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.report import report
from tests.reporting.planted import curve, true_results, write

CURVES = pooled(means_of(list(true_results().values())))


def test_linear_axes_start_at_zero_and_hold_every_curve() -> None:
    figure = curves_figure(CURVES, FigureOptions(axes="linear"))
    above = figure.axes[0]
    assert (above.get_xscale(), above.get_yscale()) == ("linear", "linear")
    assert above.get_xlim() == (0, 10_000)
    assert above.get_ylim()[1] > max(curve.regret.end.mean for curve in CURVES)
    below = figure.axes[2]
    assert below.get_ylim()[0] < 0  # the strip of curves that stay at zero
    assert all(tick > 0 for tick in below.get_yticks())


@pytest.mark.parametrize("axes", ["log", "linear"])
def test_curves_start_where_they_are_asked_to(axes: str) -> None:
    figure = curves_figure(CURVES, FigureOptions(axes=axes, first_round=100))  # type: ignore[arg-type]
    assert [panel.get_xlim() for panel in figure.axes] == [(100, 10_000)] * 4


@pytest.mark.parametrize(("columns", "width", "panels"), [(1, 3.4, (4, 1)), (2, 6.8, (2, 2))])
def test_a_figure_fits_the_columns_of_a_paper(columns: int, width: float, panels: tuple[int, int]) -> None:
    figure = curves_figure(CURVES, FigureOptions(columns=columns))
    assert figure.get_size_inches()[0] == pytest.approx(width)
    grid = figure.axes[0].get_gridspec()
    assert grid is not None and (grid.nrows, grid.ncols) == panels
    sizes = [float(text.get_fontsize()) for panel in figure.axes for text in (*panel.texts, *panel.get_xticklabels())]
    assert min(sizes) >= 7
    box = figure.get_tightbbox()
    assert box.x0 >= 0 and box.x1 <= width + 0.01  # the names beside the curves are inside too


def test_a_panel_that_is_left_over_is_empty() -> None:
    curves = pooled(means_of([curve("original", model) for model in ("pbm", "cm", "dcm")]))
    figure = curves_figure(curves, FigureOptions(columns=2))
    assert [panel.get_visible() for panel in figure.axes] == [True] * 5 + [False] + [True] + [False]


def test_labels_last_as_long_as_they_are_given() -> None:
    with labels({"kl-ucb-br": "Ours"}, {}):
        assert (policy_name("kl-ucb-br"), policy_name("top-rank")) == ("Ours", "TopRank")
    assert policy_name("kl-ucb-br") == "KL-UCB-BR"


@pytest.mark.usefixtures("blank_figure_files")
def test_the_page_and_the_tables_take_the_names(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", [curve("kl-ucb-br"), curve("original")])
    made = report(path, tmp_path, names={"kl-ucb-br": "Ours & yours"})
    text = made.page.read_text(encoding="utf-8")
    assert "Ours &amp; yours" in text and "KL-UCB-BR never" not in text
    assert r"Ours \& yours" in (tmp_path / "figures" / "endings.tex").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": "cubic"}, "axes: found 'cubic', expected log or linear"),
        ({"columns": 3}, "columns: found 3, expected 1 or 2"),
        ({"first_round": 0}, "first_round: found 0, expected at least 1"),
        ({"first_round": 10_000}, "first_round: found 10000, expected less than 10,000, the last round"),
        ({"names": {"best": "x"}}, "names: no results of 'best'; there are original, kl-ucb-br"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", list(true_results().values()))
    with pytest.raises(ArgumentError) as problem:
        report(path, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert str(problem.value).startswith(message)
    assert not (tmp_path / "out").exists()


def _sweep(count: int, models: tuple[str, ...] = ("pbm",)) -> list[Pooled]:
    names = [f"kl-ucb-br rule=anytime:1e-5 K={place}" for place in range(count)]
    return pooled(
        means_of([curve(name, model, regret=10.0 * (n + 1)) for n, name in enumerate(names) for model in models])
    )


@pytest.mark.parametrize("count", [1, 9, 10, 30])
@pytest.mark.parametrize("columns", [None, 1])
def test_all_names_are_inside_the_figure(count: int, columns: int | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns when a layout leaves no room
        figure = curves_figure(_sweep(count), FigureOptions(columns=columns))
    figure.draw_without_rendering()  # legends find their places when they are drawn
    width, height = figure.get_size_inches() * figure.dpi
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    texts = [text for panel in figure.axes for text in panel.texts if text.get_text() != "0"]
    assert len(legends or texts) == (count if legends else 2 * count)
    for text in (*legends, *texts):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


def test_many_names_are_below_the_figure_and_few_beside_the_curves() -> None:
    few, many = curves_figure(_sweep(9)), curves_figure(_sweep(10))
    assert not few.legends and len(many.legends) == 1
    assert few.axes[0].texts and not many.axes[0].texts


def test_panels_keep_their_size_beside_long_names() -> None:
    short, long = curves_figure(CURVES), curves_figure(_sweep(5, ("pbm", "cm")))
    widths = [figure.axes[0].get_position().width * figure.get_size_inches()[0] for figure in (short, long)]
    assert widths[1] >= 0.9 * widths[0]
