"""Figures as files (PNG, SVG, PDF, each written at once) and as part of a page."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from saferank.files import replacing
from saferank.reporting.looks import dark_colours

FORMATS = ("png", "svg", "pdf")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "svg.hashsalt": "saferank",  # the same figure is the same file
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 220,
}
_NO_DATE: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def drawing() -> Iterator[None]:
    """The style in which figures are drawn and saved."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name in another script: boxes do
        yield


def arranged(figure: Figure) -> Figure:
    """A figure whose parts have found their places, once and for all formats."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending."""
    form = path.suffix.removeprefix(".")
    with replacing(path) as file, drawing():
        figure.savefig(file, format=form, metadata=_NO_DATE[form])


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    content = io.BytesIO()
    with drawing():
        figure.savefig(content, format="png", metadata=_NO_DATE["png"])
    return content.getvalue()


def write_formats(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write a figure in every format; returns the files."""
    paths = [folder / f"{stem}.{form}" for form in FORMATS]
    for path in paths:
        write_figure(figure, path)
    return paths


def inline_svg(figure: Figure, identity: str) -> str:
    """A figure for the middle of a page: no background, the page's colours, ids that no other figure has."""
    text = io.StringIO()
    with drawing():
        figure.savefig(text, format="svg", transparent=True, metadata=_NO_DATE["svg"])
    svg = text.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{identity}-", svg)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true" focusable="false">', svg)
    for colour in dark_colours():
        svg = svg.replace(colour, f"var(--{colour_variable(colour)})")
    return svg.replace("xlink:href", "href")


def colour_variable(colour: str) -> str:
    """The name of a colour in the page's style sheet."""
    return f"figure-{colour.removeprefix('#')}"
