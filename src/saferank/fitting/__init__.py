"""From click logs to click models: estimation, standard errors, evaluation on held-out pages.

``models.py`` has what is particular to each click model; everything else (EM in ``estimation.py``, the bootstrap,
evaluation) knows no model.
"""

from saferank.fitting.estimation import ITERATIONS, Estimator, Fitted
from saferank.fitting.models import ESTIMATORS, estimator

__all__ = ["ESTIMATORS", "ITERATIONS", "Estimator", "Fitted", "estimator"]
