"""How figures are drawn: kind of axes, width for a paper, first round."""

from dataclasses import dataclass
from typing import Literal

COLUMN_INCHES = 3.4
"""The width of one column of a two-column paper; type is set for this width and is not to be scaled."""
PAGE_INCHES = 3.75
"""The width of a panel where no paper is asked for."""

Axes = Literal["log", "linear"]


@dataclass(frozen=True)
class FigureOptions:
    """What a reader may choose; the defaults are those of the page."""

    axes: Axes = "log"
    columns: int | None = None  # of a paper; None: as many panels side by side as there are click models
    first_round: int | None = None  # None: the last three powers of ten on logarithmic axes, all on linear ones

    def panels_beside(self, models: int) -> int:
        """How many click models stand side by side."""
        return models if self.columns is None else min(self.columns, models)

    @property
    def panel_inches(self) -> float:
        """The width of a panel with the names beside it."""
        return PAGE_INCHES if self.columns is None else COLUMN_INCHES

    @property
    def pair_inches(self) -> float:
        """The height of two panels, one above the other; two click models above each other fit a page."""
        return 4.2 if self.columns == 1 else 5.1

    @property
    def words(self) -> str:
        """The axes in a sentence of a caption."""
        return "Axes are logarithmic" if self.axes == "log" else "Axes are linear"


USUAL = FigureOptions()
