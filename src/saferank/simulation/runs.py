"""Single runs of a cell, kept at some of the checkpoints: what paired comparisons and quantiles are made of.

Means are kept at every checkpoint. Runs would take a hundred times as much memory, so about 25 of the checkpoints are
enough for them, log-spaced like the checkpoints themselves, the powers of ten and the last one always among them.
"""

from typing import NamedTuple

import numpy as np

from saferank.verbs import Floats, Ints

MEASURES = ("regret", "violations", "wrong_certificates", "clicks_relative", "worst_page")
"""The columns of a run, in the order in which the compiled loop writes them.

``clicks_relative`` are the expected clicks of all pages so far divided by those of the original ranking;
``worst_page`` is the smallest such ratio of a single page.
"""

_ENOUGH = 25
_FEW = 40
"""Maximum number of checkpoints that are all kept."""


class Runs(NamedTuple):
    """The runs of one policy on one instance."""

    rounds: Ints  # the checkpoints that are kept, ascending
    values: Floats  # [repetition, checkpoint, measure]

    @property
    def finals(self) -> Floats:
        """The last checkpoint: [repetition, measure]."""
        return self.values[:, -1]


def kept_checkpoints(rounds: Ints) -> Ints:
    """Which of the checkpoints are kept for single runs, by place.

    >>> kept_checkpoints(np.arange(1, 11)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> places = kept_checkpoints(np.unique(np.geomspace(1, 1e5, 200).astype(np.int64)))
    >>> len(places)  # powers of ten that are no checkpoints cannot be kept
    26
    """
    if len(rounds) <= _FEW:
        return np.arange(len(rounds))
    places = np.searchsorted(rounds, np.geomspace(rounds[0], rounds[-1], _ENOUGH) * (1 - 1e-12))
    tens = np.flatnonzero(np.isin(rounds, 10 ** np.arange(19)))
    return np.unique([*places[:-1], *tens, len(rounds) - 1])


def kept(rounds: Ints, runs: Floats) -> Runs:
    """The runs [repetition, checkpoint, measure] of all checkpoints, cut down to those that are kept."""
    places = kept_checkpoints(rounds)
    return Runs(rounds[places], runs[:, places])
