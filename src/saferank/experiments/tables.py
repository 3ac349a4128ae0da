"""The ends of all curves, averaged over instances: as text, HTML and LaTeX, and as rows for other tables."""

import html as markup
from collections.abc import Sequence
from typing import NamedTuple

from saferank.reporting.claims.questions import final_regret, final_violations
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, plainly
from saferank.reporting.pooling import Pooled, pooled
from saferank.simulation.results import Result

HEADINGS = ("model", "policy", "regret", "violations a run", "wrong certificates")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


class FinalRow(NamedTuple):
    """The end of one curve."""

    model: str
    policy: str
    regret: Measured
    violations: Measured
    wrong_certificates: float | None  # None for policies without certificates

    def cells(self) -> tuple[str, ...]:
        """The row as text; numbers are written alike in every column."""
        wrong = "-" if self.wrong_certificates is None else plainly(self.wrong_certificates)
        return self.model, self.policy, str(self.regret), plainly(self.violations.mean), wrong


def final_rows(curves: Sequence[Result]) -> list[FinalRow]:
    """One row per click model and policy."""
    return [_row(curve) for curve in pooled(curves)]


def _row(curve: Pooled) -> FinalRow:
    wrong = None if curve.wrong_certificates is None else float(curve.wrong_certificates[-1])
    return FinalRow(curve.model, curve.policy, final_regret(curve), final_violations(curve), wrong)


def title(curves: Sequence[Result]) -> str:
    """What the table shows."""
    return f"after {curves[0].rounds[-1]:,} rounds, averaged over instances"


def text(curves: Sequence[Result]) -> str:
    """The table in columns, numbers to the right."""
    rows = [HEADINGS, *(row.cells() for row in final_rows(curves))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(_padded(row, widths)).rstrip() for row in rows)


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))]


def html(curves: Sequence[Result], headline: str) -> str:
    """The table for a notebook."""
    head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    rows = ["".join(f"<td>{markup.escape(cell)}</td>" for cell in row.cells()) for row in final_rows(curves)]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"<caption>{markup.escape(headline)}; {title(curves)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def latex(curves: Sequence[Result]) -> str:
    """A booktabs table: one row per policy, for each click model its regret and violations with standard errors."""
    rows = final_rows(curves)
    models = list(dict.fromkeys(row.model for row in rows))
    spans = " & ".join(rf"\multicolumn{{2}}{{c}}{{{_escaped(model_name(model))}}}" for model in models)
    lines = [
        rf"% {title(curves)}",
        rf"\begin{{tabular}}{{l{'rr' * len(models)}}}",
        r"\toprule",
        rf" & {spans} \\",
        "policy" + " & regret & violations" * len(models) + r" \\",
        r"\midrule",
        *(_latex_row(policy, rows, models) for policy in dict.fromkeys(row.policy for row in rows)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(policy: str, rows: Sequence[FinalRow], models: Sequence[str]) -> str:
    found = {row.model: row for row in rows if row.policy == policy}
    cells = [_latex_cells(found[model]) if model in found else " & " for model in models]
    return " & ".join([_escaped(policy_name(policy)), *cells]) + r" \\"


def _latex_cells(row: FinalRow) -> str:
    return " & ".join(f"${str(measured).replace('±', chr(92) + 'pm').replace(',', '{,}')}$" for measured in row[2:4])


def _escaped(name: str) -> str:
    return "".join(_LATEX.get(character, character) for character in name)
