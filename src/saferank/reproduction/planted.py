"""The log of a reproduction without a log: planted users, the paper's two special queries among them.

The embedded queries are planted with PBM users, two of them changed so that estimation does not lose what makes them
special. ``optimal-original``: each item is clearly better than the next one; a cascade model, which takes a lower
position for a lower attraction, finds that even more so. ``worst-original`` would not be so bad in the eyes of such a
model: its items are planted with what a cascade model has to find, divided by the examination of their positions.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from saferank.click_models import PBM
from saferank.instances import Instance
from saferank.instances.embedded import OPTIMAL, WORST, embedded_instances
from saferank.logs import write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.verbs import Floats

LOG_NAME = "log.gz"
LOG_FORMAT = "yandex-personalized"
_BEST, _STEP = 0.42, 0.85


def planted_queries(queries: int) -> list[Instance]:
    """The users of the log, most frequent query first."""
    return [_clearly_special(instance) for instance in planted_instances(queries, "pbm")]


def _clearly_special(instance: Instance) -> Instance:
    change = {OPTIMAL: _optimal, WORST: _worst}.get(instance.id)
    if change is None:
        return instance
    return replace(instance, model=instance.model._replace(attraction=np.round(change(instance.model), 4)))


def _optimal(model: PBM) -> Floats:
    return _BEST * _STEP ** np.arange(len(model.attraction), dtype=float)


def _worst(model: PBM) -> Floats:
    (cascade,) = (found for found in embedded_instances(2, models=("cm",)) if found.id == WORST)
    return np.asarray(cascade.model.attraction / model.examination)


def write_planted_log(
    folder: Path, queries: int, sessions: int, seed: int, progress: Callable[[int], object]
) -> tuple[Path, list[Instance]]:
    """Write the log into ``folder``; returns its path and the users as the log names them."""
    path = folder / LOG_NAME
    return path, write_synthetic_log(path, planted_queries(queries), sessions, seed, progress)
