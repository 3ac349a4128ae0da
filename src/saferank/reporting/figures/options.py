"""How figures are drawn: kind of axes, width for a paper, first round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

COLUMN_INCHES = 3.4
"""The width of one column of a two-column paper; type is set for this width and is not to be scaled."""
PAGE_INCHES = 3.75
"""The width of a panel where no paper is asked for."""
MOST_NAMES = 9
"""More curves than this have their names in a legend below the figure instead of beside their ends."""
LONGEST_NAME = 16
"""Characters of a name for which a panel has room beside it."""
_CHARACTER_INCHES = 0.075

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

    def names_beside(self, names: Sequence[str]) -> bool:
        """True when names stand beside the ends of the curves; otherwise they are in a legend below the figure.

        The width of a column of a paper is fixed, so that long names would leave no room for the curves.
        """
        fixed = self.columns is not None
        return len(names) <= MOST_NAMES and not (fixed and max(map(len, names)) > LONGEST_NAME)

    def inches_with_names(self, names: Sequence[str]) -> float:
        """The width of a panel with these names, which are beside it or in a legend below."""
        if self.columns is not None or not self.names_beside(names):
            return self.panel_inches
        return self.panel_inches + _CHARACTER_INCHES * max(0, max(map(len, names)) - LONGEST_NAME)

    def legend_columns(self, names: Sequence[str], inches: float) -> int:
        """How many names of a legend fit side by side into a figure of this width."""
        return max(1, int(inches / (0.55 + _CHARACTER_INCHES * max(map(len, names)))))

    @property
    def pair_inches(self) -> float:
        """The height of two panels, one above the other; two click models above each other fit a page."""
        return 4.2 if self.columns == 1 else 5.1

    @property
    def words(self) -> str:
        """The axes in a sentence of a caption."""
        return "Axes are logarithmic" if self.axes == "log" else "Axes are linear"


USUAL = FigureOptions()
