"""Tables for a paper: booktabs, one cell for every column, and names that cannot break out of their cell."""

from saferank.reporting.latex import endings_table, escaped, tabular


def test_names_stay_text() -> None:
    evil = "\\end{tabular}\n% & $x_1^2$ #1 ~ 2:x"
    text = tabular("l", [[evil]], [[evil]], f"about\n{evil}")
    assert text.count("\n") == 8 and text.splitlines()[0].startswith("% about ")
    assert r"\textbackslash{}end\{tabular\} \% \& \$x\_1\textasciicircum{}2\$ \#1 \textasciitilde{} 2:x" in text
    assert escaped("0.5 \N{MULTIPLICATION SIGN} 3 ± 1") == r"0.5 $\times$ 3 $\pm$ 1"


def test_a_span_is_only_what_the_table_asks_for() -> None:
    text = endings_table([("3:a", [("1", "2")])], ["pbm"], "x")
    assert r"\multicolumn{2}{c}{PBM}" in text and r"3:a & 1 & 2 \\" in text
