"""What certificates make of a query, and that a run gives the same numbers as ``simulate``."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from saferank.forecasting.playing import CHANGED, CONFIRMED, OPEN, Job, fates_of, jobs_of, played
from saferank.forecasting.worlds import Traffic, Worlds, schedule_of
from saferank.instances import embedded_instances
from saferank.progress import Meter
from saferank.statistics.certificates import keep_certificate, new_certificates


def fates(
    pairs: list[tuple[int, int, int]], n_items: int = 4, shown: int = 3, lifetime: int | None = None
) -> list[str]:
    """The fates within 7, 30 and 90 days at 10 pages a day, after certificates (better, worse, round)."""
    given = new_certificates(len(pairs))
    for better, worse, when in pairs:
        keep_certificate(given, better, worse, when, 10**6)
    cell = SimpleNamespace(setup=SimpleNamespace(n_positions=shown, n_items=n_items, lifetime=lifetime))
    return list(fates_of(given, Job(cast(Any, cell), schedule_of(10, 5000), 0)).values())


def test_a_certificate_against_productions_order_changes_the_query() -> None:
    assert fates([(0, 1, 5), (2, 1, 100)]) == [OPEN, CHANGED, CHANGED]
    assert fates([(3, 2, 60)]) == [CHANGED] * 3  # a candidate enters


def test_an_order_that_is_certified_throughout_is_confirmed() -> None:
    assert fates([(0, 1, 5), (1, 2, 80), (2, 3, 500)]) == [OPEN, OPEN, CONFIRMED]
    assert fates([(0, 1, 5), (1, 2, 6), (1, 3, 7)]) == [OPEN] * 3  # nothing about 2 and the candidate 3
    assert fates([]) == [OPEN] * 3


def test_certificates_that_have_ended_confirm_nothing() -> None:
    """Epochs of 100 pages, which are 10 days: what was certified in the first one holds until page 200."""
    early, late = [(0, 1, 5), (1, 2, 80), (2, 3, 90)], [(0, 1, 805), (1, 2, 810), (2, 3, 890)]
    assert fates(early, lifetime=100) == [OPEN, OPEN, OPEN]  # 70 pages: one is not there yet; 300: all have ended
    assert fates([*early[:2], (2, 3, 60)], lifetime=150) == [OPEN, CONFIRMED, OPEN]
    assert fates(early + late, lifetime=100) == [OPEN, OPEN, CONFIRMED]
    assert fates([(2, 1, 5)], lifetime=10) == [CHANGED] * 3, "clicks have changed the ranking, for a while"


@pytest.mark.parametrize(("days", "lifetime"), [(0, None), (14, 280)])
def test_runs_are_those_of_the_simulator(days: float, lifetime: int | None) -> None:
    from saferank import simulate

    (instance,) = embedded_instances(3, models=("pbm",))[2:]
    worlds = Worlds("pbm", [instance], [[instance], [instance]], {instance.id: 10}, {})
    jobs = jobs_of(worlds, Traffic(20, {instance.id: 20.0}), ("safe-draw",), 5, "anytime:1e-5", 5000, 4, days)
    runs = played(jobs, 1, Meter(0))
    assert [each.job.world for each in runs] == [0, 1, 2]
    results = simulate([instance], ["safe-draw"], 5, 1820, 2, "anytime:1e-5", 4, 1, lifetime=lifetime, progress=False)
    curve = results.curves[0]
    assert curve.clicks_relative_mean is not None
    extra = (curve.clicks_relative_mean[-1] - 1) * 1820 * jobs[0].cell.world.original
    assert runs[0].extra[:, -1].mean() == pytest.approx(extra)
