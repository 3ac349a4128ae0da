"""``saferank.report``: the page of results, as one function."""

import importlib.util
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from saferank.errors import ArgumentError, OutputError, UsageError, several, whole_number

if TYPE_CHECKING:
    from saferank.reporting.build import Report
    from saferank.reporting.figures.panels import FigureOptions


class Savable(Protocol):
    """Results that are not in a file yet."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write them; the first of the files that are returned is the results file."""


def report(
    results: "str | os.PathLike[str] | Savable",
    out: str | os.PathLike[str] | None = None,
    *,
    without: Collection[str] = (),
    optimal: str | None = None,
    none_of_best: str | None = None,
    model_study: str | os.PathLike[str] | None = None,
    axes: str = "log",
    columns: int | None = None,
    first_round: int | None = None,
    names: Mapping[str, str] | None = None,
    rule: str | None = None,
    positions: int | None = None,
    lifetime: int | str | None = None,
) -> "Report":
    """Make a page of results: figures, the paper's claims with verdicts, sensitivity, what was run.

    Tables are written as LaTeX too. Needs matplotlib and jinja2.

    Args:
        results: A results file, the folder of one, or ``Results``, which are saved into ``out`` first.
        out: The folder for report.html; None: that of the results file.
        without: Policies to leave out.
        optimal: The id of the query for the figures of an original ranking that is optimal.
        none_of_best: The id of the query for those of a page with none of the best items.
        model_study: A results file with policies that were made for one click model, for the section about them.
        axes: ``log`` or ``linear``.
        columns: 1 or 2: figures fit one or two columns of a paper at full size.
        first_round: Where curves start.
        names: Other names for policies.
        rule: Which rule of a sweep.
        positions: Which number of positions of a sweep.
        lifetime: Which lifetime of a sweep, a number or ``none``.

    Returns:
        The page, its claims and its files.

    Raises:
        UsageError: The file is no sound results file, a choice does not fit it, or matplotlib or jinja2 are missing.
        OutputError: A file cannot be written.

    """
    missing = missing_for_a_report()
    if missing:
        raise UsageError(f"a report needs {' and '.join(missing)}; to get them: pip install 'saferank[report]'")
    from saferank.reporting.build import Choices, build_report
    from saferank.reporting.reading import Selection

    file = _results_file(results, out)
    special = {"optimal": optimal, "none_of_best": none_of_best}
    chosen = {key: query for key, query in special.items() if query is not None}
    figures = figure_options(axes, columns, first_round)
    study = None if model_study is None else _results_file(model_study, None)
    choices = Choices(
        several(without, "without"), chosen, figures, study, names or {}, Selection(rule, positions, lifetime)
    )
    home = file.parent if out is None else Path(out)
    try:
        return build_report(file, home, choices)
    except OSError as problem:
        raise OutputError(f"{problem.filename or home}: cannot be written: {problem.strerror or problem}") from problem


def figure_options(axes: str, columns: int | None, first_round: int | None) -> "FigureOptions":
    """How figures are drawn; an ``ArgumentError`` for what cannot be."""
    from saferank.reporting.figures.panels import FigureOptions

    if axes not in ("log", "linear"):
        raise ArgumentError("axes", f"found {axes!r}, expected log or linear")
    if columns not in (None, 1, 2):
        raise ArgumentError("columns", f"found {columns}, expected 1 or 2")
    if first_round is not None:
        whole_number(first_round, "first_round")
    return FigureOptions(axes, columns, first_round)  # type: ignore[arg-type]


def missing_for_a_report() -> list[str]:
    """What a report needs and this installation lacks."""
    return [module for module in ("matplotlib", "jinja2") if importlib.util.find_spec(module) is None]


def _results_file(results: "str | os.PathLike[str] | Savable", out: str | os.PathLike[str] | None) -> Path:
    if isinstance(results, str | os.PathLike):
        from saferank.reporting.frames import RESULTS

        path = Path(results)
        return path / RESULTS if path.is_dir() else path
    if not hasattr(results, "save"):
        raise ArgumentError(
            "results", f"found {type(results).__name__}, expected Results, a results file or its folder"
        )
    if out is None:
        raise ArgumentError("out", "is needed for results that are not in a file")
    return results.save(Path(out), overwrite=True)[0]
