"""The table of other worlds: every world is another one than the paper's, and a row has the means and the error."""

import numpy as np
from worlds import WORLDS, _line

from saferank import simulate
from saferank.instances import embedded_instances


def test_every_world_has_a_name_of_its_own_in_the_results() -> None:
    instances = embedded_instances(2, models=("pbm",))[:1]
    small = {"policies": ["original"], "rounds": 20, "repetitions": 1, "jobs": 1, "progress": False}
    names = [simulate(instances, **small, **changes).curves[0].world for changes in WORLDS.values()]  # type: ignore[arg-type]
    assert names[0] is None
    assert len(set(names)) == len(WORLDS) == 7


def test_a_row_has_means_over_queries_and_runs_and_the_error_within_queries() -> None:
    values = np.array([[[10.0, 1, 0, 1, 1], [14.0, 3, 0, 1, 1]], [[100.0, 0, 1, 1, 1], [100.0, 0, 0, 1, 1]]])
    assert _line("cm", "none", "safe-draw", values) == "| cm | none | safe-draw | 56 (1) | 1.0 | 0.250 |"
