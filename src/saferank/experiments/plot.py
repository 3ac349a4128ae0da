"""The figure of results: a matplotlib figure that shows itself in a notebook and can be saved."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saferank.errors import ArgumentError, writing
from saferank.simulation.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plot:
    """Regret above, safety violations below, one column per click model."""

    def __init__(self, curves: Sequence[Result]) -> None:
        self._curves = curves
        require_matplotlib()

    @functools.cached_property
    def figure(self) -> "Figure":
        """The matplotlib figure, to change it."""
        from saferank.reporting.figures.curves import curves_figure
        from saferank.reporting.pooling import pooled

        return curves_figure(pooled(self._curves))

    def save(self, path: str | Path) -> Path:
        """Write the figure; the ending of the name is the format."""
        from saferank.reporting.figures.files import FORMATS, write_figure

        if Path(path).suffix.removeprefix(".") not in FORMATS:
            raise ArgumentError("path", f"found {str(path)!r}, expected a name that ends in .{', .'.join(FORMATS)}")
        with writing(path):
            write_figure(self.figure, Path(path))
        return Path(path)

    def _repr_png_(self) -> bytes:
        from saferank.reporting.figures.files import png

        return png(self.figure)

    def __repr__(self) -> str:
        models = ", ".join(dict.fromkeys(curve.model for curve in self._curves))
        return f"Plot of regret and violations under {models}; .figure is the matplotlib figure, .save(path) writes it"


def require_matplotlib() -> None:
    """Say how to get matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("plot() needs matplotlib: pip install 'saferank[report]'") from problem
