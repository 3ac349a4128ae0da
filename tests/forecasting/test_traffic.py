"""Pages a day by query, and runs that end before the last week."""

import numpy as np
import pytest

from saferank.errors import ArgumentError
from saferank.forecasting.traffic import WEEKS, check_pages_a_day, schedule_of


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
