"""Tables: booktabs, one cell for every column, and names that cannot break out of their cell."""

from saferank.reporting.frames import means_of
from saferank.reporting.pooling import endings_table, pooled
from saferank.table import MarkedCell, TextTable, escaped
from tests.reporting.planted import curve

EVIL = "\\end{tabular}\n% & $x_1^2$ #1 ~ 2:x <b>"


def test_names_stay_text() -> None:
    table = TextTable(f"about\n{EVIL}", [EVIL], [[EVIL]])
    text = table.latex()
    assert text.count("\n") == 8 and text.splitlines()[0].startswith("% about ")
    assert r"\textbackslash{}end\{tabular\} \% \& \$x\_1\textasciicircum{}2\$ \#1 \textasciitilde{} 2:x" in text
    assert escaped("0.5 \N{MULTIPLICATION SIGN} 3 ± 1") == r"0.5 $\times$ 3 $\pm$ 1"
    assert "<b>" not in table.html() and table.html().count("&lt;b&gt;") == 4


def test_groups_stand_above_their_columns_and_the_least_regret_is_bold() -> None:
    curves = pooled(means_of([curve("3:a", regret=2.0), curve("b", regret=1.0)]))
    table = endings_table(curves, ["3:a", "b"], ["pbm"], str, "x")
    assert r" & \multicolumn{2}{c}{PBM} \\" in table.latex() and r"3:a & 2.00 $\pm$ 0.10 & 0 \\" in table.latex()
    assert r"b & \textbf{1.00 $\pm$ 0.10} & 0 \\" in table.latex()
    assert '<td class="number best">1.00 ± 0.10</td>' in table.html()


def test_text_has_numbers_to_the_right_and_headings_of_rows() -> None:
    table = TextTable("t", ["name", "n"], [["all"], ["a", "1"], [MarkedCell("bb", detail="why"), "22"]])
    assert table.text() == "name   n\nall\na      1\nbb    22"
    assert table.html().count('scope="rowgroup"') == 1
