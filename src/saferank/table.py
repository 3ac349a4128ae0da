"""One table for all readers: on a page and in a notebook (HTML), in a paper (LaTeX with booktabs), as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import NamedTuple

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "∞": r"$\infty$", "…": r"\ldots{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

BEST, DEFAULT = "best", "default"
"""Styles of cells: those to be seen first, and those that others are compared with."""


class MarkedCell(NamedTuple):
    """A cell that is more than text."""

    text: str
    look: str = ""
    beside: str = ""  # on the screen behind the text
    detail: str = ""  # on a page below the text, in small type


Row = Sequence[str | MarkedCell]


@dataclass(frozen=True)
class TextTable:
    """Rows of text below the names of their columns; a row of a single cell is the heading of those below it."""

    title: str
    columns: Row
    rows: Sequence[Row]
    caption: str = ""  # instead of the title, where a sentence is needed
    groups: Sequence[tuple[str, int]] = ()  # names, each above a number of columns, from the left
    names: int = 1  # the first columns, which are names; the others are numbers
    key: str = ""  # name of the LaTeX file; empty: there is none

    def html(self) -> str:
        """The table for a page; every text is escaped."""
        above = "".join(
            f'<th scope="colgroup" colspan="{count}">{escape(name)}</th>' if name else f'<td colspan="{count}"></td>'
            for name, count in self.groups
        )
        head = "".join(
            f'<th scope="col"{_numeric(place >= self.names)}>{_marked_up(cell)}</th>'
            for place, cell in enumerate(self.columns)
        )
        rows = "\n".join(f"<tr>{self._html_row(row)}</tr>" for row in self.rows)
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">\n<table>\n'
            f"<caption><span>{escape(self.caption or self.title)}</span></caption>\n"
            f"<thead>{f'<tr>{above}</tr>' if above else ''}<tr>{head}</tr></thead>\n"
            f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
        )

    def _html_row(self, row: Row) -> str:
        if len(row) == 1 < len(self.columns):
            return f'<th scope="rowgroup" colspan="{len(self.columns)}"><b>{_marked_up(row[0])}</b></th>'
        first, *rest = row
        cells = "".join(f"<td{_numeric(n >= self.names, c)}>{_marked_up(c)}</td>" for n, c in enumerate(rest, 1))
        return f'<th scope="row"{_numeric(False, first)}>{_marked_up(first)}</th>{cells}'

    def latex(self, about: str = "") -> str:
        r"""A ``tabular`` to be read with \input; ``about`` is a comment above it."""
        above = [rf"\multicolumn{{{count}}}{{c}}{{{escaped(name)}}}" if name else "" for name, count in self.groups]
        head = [" & ".join(above)] if above else []
        lines = [
            f"% {' '.join(f'{self.title}{about}'.split())}",
            rf"\begin{{tabular}}{{{'l' * self.names}{'r' * (len(self.columns) - self.names)}}}",
            r"\toprule",
            *(rf"{line} \\" for line in [*head, self._latex_row(self.columns)]),
            r"\midrule",
            *(rf"{self._latex_row(row)} \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def _latex_row(self, row: Row) -> str:
        texts = [rf"\textbf{{{escaped(text_of(c))}}}" if look_of(c) == BEST else escaped(text_of(c)) for c in row]
        return " & ".join([*texts, *[""] * (len(self.columns) - len(row))])

    def text(self) -> str:
        """Columns of plain text, numbers to the right."""
        rows = [[text_of(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
        return "\n".join(
            "  ".join(
                text.ljust(width) if place < self.names else text.rjust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=False))
            ).rstrip()
            for row in rows
        )


def text_of(cell: str | MarkedCell) -> str:
    """The text of a cell."""
    return cell if isinstance(cell, str) else cell.text


def look_of(cell: str | MarkedCell) -> str:
    """The look of a cell; empty for plain text."""
    return "" if isinstance(cell, str) else cell.look


def _numeric(number: bool, cell: str | MarkedCell = "") -> str:
    look = look_of(cell) if look_of(cell) in (BEST, DEFAULT) else ""  # a verdict colours its words alone
    words = " ".join(word for word in ("number" if number else "", look) if word)
    return f' class="{words}"' if words else ""


def _marked_up(cell: str | MarkedCell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    text = escape(cell.text)
    text = f'<span class="verdict {cell.look}">{text}</span>' if cell.look in ("holds", "fails", "open") else text
    beside = f' <span class="errors">{escape(cell.beside)}</span>' if cell.beside else ""
    detail = f' <span class="detail">{escape(cell.detail)}</span>' if cell.detail else ""
    return f"{text}{beside}{detail}"


def escaped(text: str) -> str:
    r"""Any text as LaTeX that prints it.

    >>> escaped("a_b & 50 % ± {x}")
    'a\\_b \\& 50 \\% $\\pm$ \\{x\\}'
    """
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))
