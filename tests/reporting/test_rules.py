"""Rules are named wherever curves differ in rule, and the report compares at one rule."""

from dataclasses import replace
from pathlib import Path

import pytest

from saferank import report
from saferank.experiments.results import Results
from saferank.reporting.reading import read_checked, read_run
from saferank.reporting.summary import one_rule
from saferank.simulation.results import Result, read_results
from saferank.table import text_of
from tests.reporting.planted import SPECIAL, curve, reproduction, runs, true_results, write


def with_safe_draw() -> list[Result]:
    """Results in which safe-draw decides by a rule of another kind than the others."""
    ours = [
        curve("safe-draw", m, q, regret=70.0, rule="anytime:1e-4")
        for m in ("pbm", "cm")
        for q in ("best", "worst", "other")
    ]
    return [*true_results().values(), *ours]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a reproduction with safe-draw beside the others."""
    folder = tmp_path_factory.mktemp("rules")
    reproduction(folder)
    (folder / "runs.parquet").unlink()
    provenance = read_results(folder / "results.json")[1]
    write(folder / "results.json", with_safe_draw(), provenance)
    report(folder / "results.json", folder)
    return folder


def test_every_table_figure_and_file_of_the_report_names_the_rules(made: Path) -> None:
    page = (made / "report.html").read_text()
    for name in ("SafeDraw (anytime:1e-4)", "KL-UCB-BR (paper:1/T)", "BubbleRank (paper:1/T)"):
        assert f'<th scope="row">{name}</th>' in page  # tables
        assert f"{name} " in page.split('class="pictures"')[1]  # figures, in words
        assert name.replace("_", "") in (made / "figures" / "endings.tex").read_text()
        assert name in (made / "figures" / "by-query.tex").read_text()
    assert "TopRank (" not in page  # takes no rule
    assert "The rules differ: KL-UCB-BR by paper:1/T, BubbleRank by paper:1/T, SafeDraw by anytime:1e-4." in page


def test_the_report_has_the_comparison_at_one_rule(made: Path) -> None:
    run, beside = read_run(made / "results.json"), read_checked(made / "sensitivity.json")
    (table,) = one_rule(run, beside)
    assert (table.title, table.key) == ("At the rule anytime:1e-4", "one-rule")
    rows = {text_of(row[0]): [text_of(cell) for cell in row[1:]] for row in table.rows}
    assert rows["KL-UCB-BR"] == ["75.00 ± 0.10", "0", "75.00 ± 0.10", "0"]
    assert rows["SafeDraw"][0] == "70.00 ± 0.10"
    assert rows["OriginalRank"][0] == "500"  # on that query alone: of three queries one was varied
    assert "All policies at anytime:1e-4, on the query that was played so" in (made / "report.html").read_text()
    assert "75.00" in (made / "figures" / "one-rule.tex").read_text()


def test_with_one_rule_names_stay_short(tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", list(true_results().values()))
    page = report(path, tmp_path, optimal=SPECIAL["optimal"]).page.read_text()
    assert "(paper:1/T)" not in page and "The rules differ" not in page
    assert one_rule(read_run(path), "none") == []


def test_tables_plots_and_comparisons_of_results_name_the_rules() -> None:
    curves = with_safe_draw()
    results = Results.of(curves, [runs(each) for each in curves])
    assert "safe-draw rule=anytime:1e-4" in results.labels and "top-rank" in results.labels
    assert "kl-ucb-br rule=paper:1/T" in repr(results)
    assert "KL-UCB-BR rule=paper:1/T" in results.to_latex()
    assert results.compare("safe-draw", "kl-ucb-br").pairs["a"][0] == "safe-draw rule=anytime:1e-4"
    alike = [replace(each, rule=each.rule and "paper:1/T") for each in curves]
    assert Results.of(alike).labels == ["original", "kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "safe-draw"]
