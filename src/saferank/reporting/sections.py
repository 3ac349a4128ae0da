"""What pages are made of: sections with words, a drawing and tables, and where drawings are drawn."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from matplotlib.figure import Figure

from saferank.reporting.figures.panels import USUAL, FigureOptions, inline_svg, write_formats
from saferank.table import TextTable

FIGURES = "figures"


@dataclass(frozen=True)
class Picture:
    """One part of a drawing, and what it shows in words."""

    svg: str
    words: str


@dataclass(frozen=True)
class Drawing:
    """A figure as a page shows it: its name, its parts, and its files as formats and addresses."""

    key: str
    name: str
    caption: str
    pictures: list[Picture]
    files: list[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """A part of a page; ``left_out`` says why there is nothing of it."""

    key: str
    title: str
    words: Sequence[str] = ()
    points: Sequence[str] = ()
    drawing: Drawing | None = None
    tables: Sequence[TextTable] = ()
    left_out: str = ""
    short: str = ""  # in the list of sections; empty: the title


@dataclass(frozen=True)
class Studio:
    """Where figures are drawn, how, and the name of the data for their captions."""

    out: Path
    data: str = ""
    options: FigureOptions = USUAL

    def drawing(
        self, key: str, name: str, caption: str, whole: Figure, parts: Iterable[tuple[Figure, str]], stem: str = ""
    ) -> Drawing:
        """Write the whole figure in every format, and make pictures of its parts for the page."""
        folder = self.out / FIGURES
        folder.mkdir(parents=True, exist_ok=True)
        files = write_formats(whole, folder, stem or key.replace("_", "-"))
        pictures = [Picture(inline_svg(part, f"{key}-{n}"), words) for n, (part, words) in enumerate(parts)]
        about = f"{caption} Data: {self.data}." if self.data else caption
        return Drawing(key, name, about, pictures, [(path.suffix[1:].upper(), link(path, self.out)) for path in files])


def link(path: Path, out: Path) -> str:
    """A relative address of a file for a page in ``out``."""
    return quote(Path(os.path.relpath(path, out)).as_posix())
