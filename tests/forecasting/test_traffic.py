"""Pages a day by query, and runs that end before the last week."""

import numpy as np
import pytest

from saferank.errors import ArgumentError
from saferank.forecasting.worlds import WEEKS, check_pages_a_day, lifetime_of, schedule_of


def test_a_run_has_the_pages_of_all_weeks_and_reads_at_their_ends() -> None:
    schedule = schedule_of(10.0, 50_000)
    assert schedule.rounds == 910
    assert set(range(70, 911, 70)) <= set(schedule.checkpoints)
    values = np.array([schedule.checkpoints], float) * 0.5
    assert schedule.cumulated(values)[0] == pytest.approx(35.0 * np.arange(1, WEEKS + 1))


def test_weeks_beyond_the_run_go_on_as_its_last_tenth() -> None:
    schedule = schedule_of(1000.0, 10_000)
    assert schedule.checkpoints == (7000, 9000, 10_000)
    got = schedule.cumulated(np.array([0.0, 0.0, 100.0]))  # 0.1 a page in the last tenth
    assert got[0] == 0
    assert got[1:] == pytest.approx(100 + 0.1 * (7000 * np.arange(2, WEEKS + 1) - 10_000))


@pytest.mark.parametrize("pages_a_day", [0.001, 0.02, 0.3])
def test_rare_queries_have_a_page_at_least(pages_a_day: float) -> None:
    schedule = schedule_of(pages_a_day, 50_000)
    assert schedule.rounds >= 1 and schedule.checkpoints[-1] == schedule.rounds
    assert np.all(np.isfinite(schedule.cumulated(np.ones(len(schedule.checkpoints)))))


@pytest.mark.parametrize("pages_a_day", [0, -3, float("inf"), float("nan")])
def test_traffic_that_is_none(pages_a_day: float) -> None:
    with pytest.raises(ArgumentError, match="pages_a_day: found"):
        check_pages_a_day(pages_a_day)


def test_epochs_of_certificates_are_counted_in_pages() -> None:
    assert lifetime_of(14, 10.0) == 140 and lifetime_of(0.5, 3.0) == 2
    assert lifetime_of(14, 0.001) == 1, "an epoch has a page at least"
    assert lifetime_of(0, 10.0) is None, "certificates never end"
