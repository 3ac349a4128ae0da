"""The synthetic log of a reproduction: what was planted is found again."""

from pathlib import Path

import pytest

from saferank.fitting import estimator
from saferank.fitting.export import instances_of
from saferank.logs import read_log
from saferank.reproduction.log import LOG_FORMAT, planted_queries, write_planted_log
from saferank.reproduction.parts import special_queries
from saferank.reproduction.protocol import PROFILES


@pytest.mark.parametrize("seed", [0, 1])
def test_the_special_queries_survive_estimation_under_both_models(tmp_path: Path, seed: int) -> None:
    """The smallest gap of attractions is more than 5 standard errors wide: it fails fewer than one seed in 10^5."""
    sizes = PROFILES["quick"]
    path, planted = write_planted_log(tmp_path, sizes.queries, sizes.sessions, seed, lambda n: None)
    log = read_log(path, LOG_FORMAT, queries=sizes.queries)
    fitted = instances_of(log, {name: estimator(name)(log, 50).model for name in ("pbm", "cm")})
    special = special_queries(fitted, 5)
    assert len({instance.id for instance in fitted}) == sizes.queries
    assert (special.optimal.id, special.none_of_best.id) == (planted[0].id, planted[1].id)
    assert special.optimal.wrong_pairs == {"pbm": 0, "cm": 0}
    assert special.none_of_best.best_missing == {"pbm": 5, "cm": 5}


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_as_many_queries_are_planted_as_are_asked_for(queries: int) -> None:
    planted = planted_queries(queries)
    assert len(planted) == queries
    assert all(0 < attraction < 1 for instance in planted for attraction in instance.model.attraction)
