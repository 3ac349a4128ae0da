"""What is made of results: averages over instances, figures, verdicts on the paper's claims, one page."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saferank.report.building import Report


def build(
    results: Path, out: Path, *, without: Collection[str] = (), special: Mapping[str, str] | None = None
) -> "Report":
    """Make the report of a results file: ``out``/report.html and the figures, and the claims with their verdicts.

    ``without`` names policies to leave out; ``special`` gives ids of the queries that are to stand for ``optimal`` and
    ``none_of_best``. Needs matplotlib and jinja2 (``pip install 'saferank[report]'``). Raises ``ValueError`` with a
    sentence when the file is no sound results file.
    """
    from saferank.report.building import build_report

    return build_report(Path(results), Path(out), without=without, special=special)
