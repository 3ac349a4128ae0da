r"""Tables for a paper: LaTeX with booktabs, every name escaped, to be read with \input."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from saferank.files import write_atomically
from saferank.reporting.claims import Claim, NotRun
from saferank.reporting.looks import model_name
from saferank.reporting.readings import claim_tables
from saferank.reporting.spread import ClickTable, Spread

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "∞": r"$\infty$", "…": r"\ldots{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def escaped(text: str) -> str:
    r"""Any text as LaTeX that prints it.

    >>> escaped("a_b & 50 % ± {x}")
    'a\\_b \\& 50 \\% $\\pm$ \\{x\\}'
    """
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def tabular(columns: str, head: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], about: str) -> str:
    """A table of escaped cells; a cell of the head like ``2:PBM`` spans two columns."""
    lines = [
        f"% {' '.join(about.split())}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *(_line([_spanned(cell) for cell in row]) for row in head),
        r"\midrule",
        *(_line([escaped(cell) for cell in row]) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _spanned(cell: str) -> str:
    number, colon, text = cell.partition(":")
    if colon and number.isdigit():
        return rf"\multicolumn{{{number}}}{{c}}{{{escaped(text)}}}"
    return escaped(cell)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def endings_table(endings: Sequence[tuple[str, Sequence[tuple[str, str]]]], models: Sequence[str], about: str) -> str:
    """Regret and violations of every policy under every click model."""
    head = [["", *(f"2:{model_name(m)}" for m in models)], ["policy", *["regret", "violations"] * len(models)]]
    rows = [[policy, *(cell for pair in cells for cell in pair)] for policy, cells in endings]
    return tabular("l" + "rr" * len(models), head, rows, about)


def claims_table(claims: Sequence[Claim], not_run: Sequence[NotRun], models: Sequence[str], about: str) -> str:
    """Every claim with its verdict under every click model."""
    rows: list[list[str]] = []
    for place, of_place in claim_tables(claims, models, not_run).items():
        rows.append([place[:1].upper() + place[1:], *[""] * len(models)])
        rows += [[each.text, *(claim.verdict if claim else "-" for claim in each.cells)] for each in of_place]
    return tabular("l" * (1 + len(models)), [["claim", *map(model_name, models)]], rows, about)


def by_query_table(found: Mapping[str, Sequence[Spread]], about: str) -> str:
    """On how many queries a policy is better than OriginalRank, equal, worse; shares and tails."""
    head = [["model", "policy", "better / equal / worse", "median share", "largest share", "99 % / worst run"]]
    rows = [
        [model_name(model), each.name, each.counts, each.median, each.largest, each.tail]
        for model, spreads in found.items()
        for each in spreads
    ]
    return tabular("llrrrr", head, rows, about)


def clicks_table(tables: Sequence[ClickTable], about: str) -> str:
    """The worst page and the clicks of the first pages, relative to the original's."""
    pages = tables[0].pages
    head = [["model", "policy", "worst page", *(f"{n:,} pages" for n in pages)]]
    rows = [
        [model_name(table.model), row.name, str(row.worst_page), *map(str, row.after)]
        for table in tables
        for row in table.rows
    ]
    return tabular("ll" + "r" * (1 + len(pages)), head, rows, about)


def write_tables(folder: Path, tables: Mapping[str, str]) -> list[Path]:
    """Write each table as a file of its name; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.tex" for name in tables]
    for path, text in zip(paths, tables.values(), strict=True):
        write_atomically(path, text)
    return paths
