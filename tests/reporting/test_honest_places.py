"""What weakens a claim stands beside it: special queries that are not quite, and click models that do not fit."""

import json
from pathlib import Path
from typing import Any

import pytest

from saferank import report
from saferank.reporting.build import Report
from tests.reporting.planted import reproduction


def changed(folder: Path, **facts: Any) -> Report:
    """The report of a reproduction of which these facts are others."""
    path = reproduction(folder)
    data = json.loads(path.read_text())
    data["provenance"]["reproduction"].update(facts)
    path.write_text(json.dumps(data))
    return report(path, folder)


@pytest.mark.usefixtures("blank_figure_files")
def test_a_query_with_nine_wrong_pairs_is_not_shown_as_optimal(tmp_path: Path) -> None:
    special = {
        "optimal": {"instance": "best", "wrong_pairs": {"pbm": 9, "cm": 2}},
        "none_of_best": {"instance": "worst", "best_missing": {"pbm": 5, "cm": 4}},
    }
    made = changed(tmp_path, special=special)
    page = made.page.read_text()
    assert (
        "Left out: no query is like that. The nearest is query best: under PBM it has 9 wrong pairs, under CM" in page
    )
    assert not (tmp_path / "figures" / "optimal-original.svg").exists()
    assert "Query worst. Not quite like that, and left out: under CM it has 1 of the best 5." in page
    assert 'id="none_of_best-0-' in page and 'id="none_of_best-1-' not in page  # PBM alone is drawn
    assert made.headline == (
        "25 of 42 claims of the paper hold on a synthetic log with planted users, 17 were not run."
    )  # fmt: skip


@pytest.mark.usefixtures("blank_figure_files")
def test_models_that_do_not_fit_are_named_beside_the_claims(tmp_path: Path) -> None:
    fit = {
        "pbm": {"held_out": 1000, "perplexity": 1.402, "impossible": 0.0, "attraction_error": 0.012},
        "cm": {"held_out": 1000, "perplexity": None, "impossible": 0.463, "attraction_error": 0.004},
    }
    made = changed(tmp_path, fit=fit)
    page = made.page.read_text()
    assert made.weaknesses == ["CM holds 46 % of the held-out pages for impossible"]
    assert (
        "CM holds 46 % of the held-out pages for impossible: its users are not those of the log, and the 17 claims"
        in page
    )
    assert '<td class="number">∞</td><td class="number">46.3 %</td><td class="number">± 0.004</td>' in page
    assert '<th scope="col">CM <span class="detail">46.3 % of pages impossible</span></th>' in page
    assert '<th scope="col">PBM</th>' in page


@pytest.mark.usefixtures("blank_figure_files")
def test_older_results_that_do_not_say_how_models_fit_are_read(tmp_path: Path) -> None:
    made = changed(tmp_path)
    assert made.weaknesses == [] and "How the click models fit" not in made.page.read_text()
