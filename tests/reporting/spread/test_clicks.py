"""Safety in clicks is what the runs measured: means over runs and queries, and the lowest run."""

import pytest

from saferank.reporting.spread import click_tables
from tests.reporting.planted import runs, true_results


def test_the_table_is_made_of_the_runs() -> None:
    results = [r for r in true_results(("pbm", "cm")).values() if r.policy != "uni-rank"]
    kept = {(r.instance, r.model, r.policy): runs(r) for r in results}
    pbm, cm = click_tables(kept, ["pbm", "cm"], ["kl-ucb-br", "uni-rank", "original"])
    assert (pbm.model, cm.model) == ("pbm", "cm")
    assert pbm.pages == [100, 1000, 10_000]
    assert [row.name for row in pbm.rows] == ["KL-UCB-BR", "OriginalRank"]
    row = pbm.rows[0]
    assert (row.worst_page.mean, row.worst_page.lowest) == pytest.approx((0.6, 0.55))
    assert [ratio.mean for ratio in row.after] == pytest.approx([0.95, 0.975, 1.0])
    assert [ratio.lowest for ratio in row.after] == pytest.approx([0.95 * 0.95, 0.975 * 0.95, 0.95])
    assert str(row.after[0]) == "0.950 (0.902)"
