"""The tables of drifting worlds: every world is one, and the rows say what was counted."""

import numpy as np
import pytest
from drift import WORLDS, _line, drift_of, every

from saferank.instances import embedded_instances
from saferank.simulation.drift import parse_drift


@pytest.mark.parametrize("world", [world for world in WORLDS if world != "none"])
def test_every_world_changes_in_the_course_of_a_run(world: str) -> None:
    text = drift_of(world, 1000)
    assert text is not None
    changes = parse_drift(text).changes(np.linspace(0.1, 0.9, 10), 5, 1000)
    assert len(changes) > 1
    assert 1 < changes[1].first <= 501
    assert not np.array_equal(changes[0].attraction, changes[-1].attraction)


def test_every_so_many_queries_under_all_their_models() -> None:
    chosen = every(embedded_instances(7, models=("pbm", "cm")), 3)
    assert len(chosen) == 6
    assert len({instance.id for instance in chosen}) == 3


def test_a_row_has_both_halves_and_the_violations_by_stretch() -> None:
    means = np.zeros((4, 5))
    means[:, 0], means[:, 1], means[:, 2] = [100, 110, 120, 1500], [2, 5, 5, 6], [0, 0.5, 0.5, 0.5]
    row = "| safe-draw | none | 1,500 | 1,400 | 2.0 | 3.0 / 0.0 / 1.0 | 0.000 | 0.500 |"
    assert _line("safe-draw", None, means) == row
