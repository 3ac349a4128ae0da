"""The run on real pages, on a small file with planted users: its comparison of models, and all of its output."""

import json
from pathlib import Path

import numpy as np
import pytest
import real_pages
import real_pages_shown
from real_pages import down_to_first_click, foresights, page_log_likelihoods

from saferank.fitting import ESTIMATORS
from saferank.fitting.likelihood import log_likelihood
from saferank.instances import load_instances
from saferank.logs import read_log, split

ITEMS = [f"item-{n}" for n in range(10)]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,600 pages of two queries with position-based users; every page has one swap of neighbours, or none."""
    path = tmp_path_factory.mktemp("pages") / "pages.ndjson"
    random = np.random.default_rng(5)
    attraction, examination = random.uniform(0.1, 0.9, 10), 0.8 ** np.arange(10)
    with path.open("w", encoding="utf-8") as file:
        for page in range(1600):
            order = np.arange(10)
            swapped = random.integers(0, 4)
            if random.random() < 0.5:
                order[[swapped, swapped + 1]] = order[[swapped + 1, swapped]]
            clicked = random.random(10) < attraction[order] * examination
            items = [ITEMS[n] for n in order]
            line = {"query": f"q{page % 2}", "items": items, "clicked": [ITEMS[n] for n in order[clicked]]}
            file.write(json.dumps(line) + "\n")
    return path


def test_the_planted_model_comes_first_and_impossible_pages_are_counted(sessions: Path) -> None:
    log = read_log(sessions, "sessions")
    ranks = {row.model: row for row in foresights(log, 20, seed=0)}
    pages = split(log, real_pages.HELD_OUT, 0)[1].pages
    several = pages.weight[pages.clicks.sum(axis=1) > 1].sum() / pages.weight.sum()
    assert ranks["cm"].impossible == pytest.approx(several)
    assert next(iter(ranks)) == "pbm" and ranks["pbm"].behind == 0
    assert ranks["dbn"].behind > 2 * ranks["dbn"].behind_error > 0
    assert np.isfinite(ranks["cm"].first_click) and sum(row.best_on for row in ranks.values()) == 2


def test_likelihoods_of_pages_add_up_and_end_at_the_first_click(sessions: Path) -> None:
    log = read_log(sessions, "sessions")
    pages, model = log.pages, ESTIMATORS["cm"](log, 1).model
    pbm = ESTIMATORS["pbm"](log, 2).model
    assert page_log_likelihoods(pbm, pages) @ pages.weight == pytest.approx(log_likelihood(pbm, pages))
    by_hand = 0.0
    for items, clicks, weight in zip(pages.items, pages.clicks, pages.weight, strict=True):
        for item, clicked in zip(items, clicks, strict=True):
            by_hand += weight * np.log(model.attraction[item] if clicked else 1 - model.attraction[item])
            if clicked:
                break
    assert log_likelihood(model, down_to_first_click(pages)) == pytest.approx(by_hand)


def test_one_command_writes_everything(sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two of the policies: the others would only take time to compile."""
    monkeypatch.setattr(real_pages, "POLICIES", ("original", "top-rank"))
    monkeypatch.setattr(real_pages_shown, "BASELINES", ("top-rank",))
    sizes = ["--rounds", "200", "--repetitions", "2", "--iterations", "5"]
    monkeypatch.setattr("sys.argv", ["real_pages.py", str(sessions), "--out", str(tmp_path / "out"), *sizes])
    real_pages.main()
    out = tmp_path / "out"
    assert len(load_instances(out / "instances.json")) == 2 * len(ESTIMATORS)
    assert all((out / f"real-pages-{name}.png").stat().st_size > 1000 for name in ("pairs", "policies"))
    text = (out / "tables.md").read_text(encoding="utf-8")
    for part in ("Held-out pages", "Regret at 200 rounds", "Violations", "paired", "fitted to the other half"):
        assert part in text
    header, *rows = (out / "pairs.csv").read_text(encoding="utf-8").splitlines()
    assert header.startswith("query,item a,item b,pages_ab,") and len(rows) == 8  # four swaps in each query
