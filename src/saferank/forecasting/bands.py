r"""How sure a forecast is: a band from runs on the fitted model and on models of drawn logs.

    centre = 2 mean(F) - mean(G)
    width  = t * sqrt(var(G) (1 + 1/B) + 4 var(F) / R),     t: the 95 % point of Student's t, B - 1 degrees of freedom

F are R runs on the model fitted to the log, G one run on each of B models fitted to logs drawn from it (Poisson
bootstrap). A noisy fit finds differences between items that are not there and promises more than it can keep; fits to
drawn logs are noisier again by as much, so mean(G) - mean(F) estimates that promise, and the centre takes it back.
var(G) holds both the error of the fit and the variation from run to run, the rest is the error of the two means.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from saferank.verbs import Floats

COVERAGE = 0.9


class Band(NamedTuple):
    """An estimate and the band in which the outcome lies in 90 of 100 such logs, if the model holds."""

    estimate: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Band":
        """In another unit."""
        return Band(self.estimate * factor, self.low * factor, self.high * factor)


def bands_of(fitted: Floats, drawn: Floats) -> list[Band]:
    """A band for each column of ``fitted`` [run, column] and ``drawn`` [drawn log, column]."""
    runs, logs = len(fitted), len(drawn)
    centre = 2 * fitted.mean(axis=0) - drawn.mean(axis=0)
    variance = drawn.var(axis=0, ddof=1) * (1 + 1 / logs) + 4 * fitted.var(axis=0, ddof=1) / runs
    width = student.ppf((1 + COVERAGE) / 2, logs - 1) * np.sqrt(variance)
    return [Band(float(c), float(c - w), float(c + w)) for c, w in zip(centre, width, strict=True)]
