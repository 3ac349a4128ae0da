"""From click logs to click models: estimation, standard errors, evaluation on held-out pages.

One model per file: ``fit(log) -> Fitted``, and two verbs beside it, ``count`` (the E-step of one page, ``coins.py``)
and ``foresee`` (the chance of each click given those above, ``likelihood.py``). Everything else (EM in
``estimation.py``, the bootstrap, evaluation) knows no model.
"""

from saferank.fitting import ccm, cm, dbn, dcm, pbm, ubm
from saferank.fitting.estimation import ITERATIONS, Estimator, Fitted

__all__ = ["ESTIMATORS", "ITERATIONS", "Estimator", "Fitted", "estimator"]

ESTIMATORS: dict[str, Estimator] = {
    "pbm": pbm.fit,
    "cm": cm.fit,
    "dcm": dcm.fit,
    "dbn": dbn.fit,
    "ubm": ubm.fit,
    "ccm": ccm.fit,
}


def estimator(name: str) -> Estimator:
    """The ``fit`` of the click model of this name.

    >>> estimator("pbm").__module__
    'saferank.fitting.pbm'
    """
    if name not in ESTIMATORS:
        raise ValueError(f"no estimation for click model {name!r}; known ones: {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]
