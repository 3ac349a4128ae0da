"""Safety in clicks is what the runs measured: means over runs and queries, and the lowest run."""

from saferank.reporting.frames import runs_frame
from saferank.reporting.spread import clicks_section
from tests.reporting.planted import runs, true_results


def test_the_table_is_made_of_the_runs() -> None:
    results = [r for r in true_results(("pbm", "cm")).values() if r.policy != "uni-rank"]
    kept = runs_frame(results, [runs(result) for result in results])
    (table,) = clicks_section(kept, ["pbm", "cm"], ["kl-ucb-br", "uni-rank", "original"]).tables
    assert [row[:2] for row in table.rows] == [[m, p] for m in ("PBM", "CM") for p in ("KL-UCB-BR", "OriginalRank")]
    assert table.columns[2:] == ["worst page", "first 100 pages", "first 1,000 pages", "first 10,000 pages"]
    assert table.rows[0][2:] == ["0.600 (0.550)", "0.950 (0.902)", "0.975 (0.926)", "1.000 (0.950)"]
