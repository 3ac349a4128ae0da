"""Users whom items satisfy differently, which the proof of safe-draw does not cover (docs/algorithms/evidence.md).

Eight items of nearly equal attraction, all of them shown. Where those that attract less satisfy more, a click on them
ends the visit, and pages say more good of them than they deserve. ``benchmarks/figures.py satisfaction`` plays it.
"""

from typing import Any

import numpy as np

from saferank import Instance, simulate

ROUNDS, RUNS = 100_000, 20
LESS, MORE = np.linspace(0.50, 0.43, 8), np.linspace(0.97, 0.83, 8)
CASES: dict[str, Instance] = {
    "DBN, the better four satisfy never, the others always": Instance.of(
        "dbn", attraction=LESS, satisfaction=[0.0] * 4 + [1.0] * 4, continuation=1.0
    ),
    "DBN, all satisfy half of the time": Instance.of("dbn", attraction=LESS, satisfaction=[0.5] * 8, continuation=1.0),
    "CCM, relevant clicks end a visit, others never do": Instance.of(
        "ccm", attraction=MORE, continuation_no_click=1.0, continuation_click_nonrelevant=1.0,
        continuation_click_relevant=0.0,
    ),
    "CCM, irrelevant clicks end a visit, others never do": Instance.of(
        "ccm", attraction=MORE, continuation_no_click=1.0, continuation_click_nonrelevant=0.0,
        continuation_click_relevant=1.0,
    ),
}  # fmt: skip


def measured() -> list[dict[str, Any]]:
    """Runs with a wrong certificate, wrong certificates and violations a run, at anytime:1e-5."""
    found = []
    for name, instance in CASES.items():
        results = simulate(
            instance, ["safe-draw"], 8, ROUNDS, RUNS, "anytime:1e-5", 11, checkpoints=[ROUNDS], progress=False
        )
        ends = results.to_polars().filter(round=ROUNDS)
        wrong, violations = ends["wrong_certificates"], ends["violations"].mean()
        row = {"wrong_runs": int((wrong > 0).sum()), "wrong_certificates": wrong.mean(), "violations": violations}
        found.append({"users": name, "runs": RUNS, **row})
    return found
