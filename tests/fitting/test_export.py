"""From a log file and back: planted users -> yandex-personalized log -> reader -> estimates, against the planted truth.

Each test asks that every number lies within 4.5 standard errors (bootstrap, 40 replicates, so t-distributed with 39
degrees of freedom): 30 numbers for CM, DBN and CCM, 300 strongly correlated ones for PBM and UBM, so a correct program
fails on at most 2 % of seeds (union bound). PBM's EM needs more than the usual 50 iterations to come to rest: after
600 its largest distance was 4.2 here, after 2,400 it was 3.3.
DCM is left out: PyClick's count, which we keep, does not find the users of an ordinary DCM
(docs/researchers/fitting.md).
"""

from pathlib import Path

import numpy as np
import pytest

from saferank._kernel import JIT
from saferank.click_models import PBM, UBM
from saferank.fitting import estimator
from saferank.fitting.bootstrap import replicates
from saferank.fitting.export import instances_of
from saferank.instances import Instance
from saferank.logs import ClickLog, read_log, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.verbs import Floats

pytestmark = pytest.mark.skipif(not JIT, reason="takes minutes when interpreted; its lines are covered by other tests")

ITERATIONS = {"pbm": 2400}


def numbers(instance: Instance, order: tuple[str, ...]) -> Floats:
    """What clicks can tell, items in the given order: attractions; for PBM and UBM their products with examinations."""
    attraction = instance.model.attraction[[instance.items.index(item) for item in order]]
    if isinstance(instance.model, PBM):
        return np.outer(attraction, instance.model.examination).ravel()
    if isinstance(instance.model, UBM):
        return np.outer(attraction, instance.model.examination[:, 0]).ravel()  # no click above: the common case
    return np.asarray(attraction)


def all_numbers(log: ClickLog, name: str, model: object, truth: list[Instance]) -> Floats:
    estimated = {instance.id: instance for instance in instances_of(log, {name: model})}
    return np.concatenate([numbers(estimated[planted.id], planted.items) for planted in truth])


SLOW = pytest.param("pbm", marks=pytest.mark.soak)  # a minute of EM; test_every_estimator.py recovers PBM without files


@pytest.mark.parametrize("name", [SLOW, "cm", "ubm", "dbn", "ccm"])
def test_planted_users_are_found_in_their_log(name: str, tmp_path: Path) -> None:
    truth = write_synthetic_log(tmp_path / "log.gz", planted_instances(3, name), sessions=40_000, seed=3)
    log, fit, iterations = (
        read_log(tmp_path / "log.gz", "yandex-personalized", queries=3),
        estimator(name),
        ITERATIONS.get(name, 600),
    )
    found = all_numbers(log, name, fit(log, iterations).model, truth)
    drawn = np.array([all_numbers(log, name, model, truth) for model in replicates(fit, log, iterations, n=40, seed=0)])
    away = (found - np.concatenate([numbers(planted, planted.items) for planted in truth])) / drawn.std(axis=0, ddof=1)
    assert np.abs(away).max() < 4.5
    assert 0.2 < np.sqrt(np.mean(away**2)) < 2.0, "standard errors are much too large or too small"
