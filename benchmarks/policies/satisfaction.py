"""Users whom items satisfy differently, which the proof of safe-draw does not cover (docs/algorithms/evidence.md).

Eight items of nearly equal attraction, all of them shown. Where those that attract less satisfy more, a click on them
ends the visit, and pages say more good of them than they deserve. ``benchmarks/figures.py satisfaction`` plays it.
"""

from typing import Any

import numpy as np

from saferank import Instance, simulate

LESS, MORE = np.linspace(0.50, 0.43, 8), np.linspace(0.97, 0.83, 8)
CASES: dict[str, tuple[Instance, str, int]] = {
    "DBN, the better four satisfy never, the others always": (
        Instance.of("dbn", attraction=LESS, satisfaction=[0.0] * 4 + [1.0] * 4, continuation=1.0), "anytime:1e-5", 20,
    ),
    "DBN, all satisfy half of the time": (
        Instance.of("dbn", attraction=LESS, satisfaction=[0.5] * 8, continuation=1.0), "anytime:1e-5", 20,
    ),
    "CCM, relevant clicks end a visit, others never do": (
        Instance.of("ccm", attraction=MORE, continuation_no_click=1.0, continuation_click_nonrelevant=1.0,
                    continuation_click_relevant=0.0), "anytime:1e-5", 20,
    ),
    "CCM, irrelevant clicks end a visit, others never do": (
        Instance.of("ccm", attraction=MORE, continuation_no_click=1.0, continuation_click_nonrelevant=0.0,
                    continuation_click_relevant=1.0), "anytime:1e-5", 20,
    ),
    "the last one at a loose level": (
        Instance.of("ccm", attraction=MORE, continuation_no_click=1.0, continuation_click_nonrelevant=0.0,
                    continuation_click_relevant=1.0), "anytime:0.01", 100,
    ),
}  # fmt: skip


def measured() -> list[dict[str, Any]]:
    """Wrong certificates and violations a run, and the share of runs with a wrong certificate, in 100,000 pages."""
    found = []
    for name, (instance, rule, repetitions) in CASES.items():
        results = simulate(
            instance, ["safe-draw"], len(instance.items), 100_000, repetitions, rule, 11, checkpoints=[100_000],
            progress=False,
        )  # fmt: skip
        assert results.runs is not None
        ends = results.runs.filter(results.runs["round"] == 100_000)
        wrong = ends["wrong_certificates"]
        found.append(
            {"users": name, "rule": rule, "runs": repetitions, "wrong_certificates": wrong.mean(),
             "wrong_runs": int((wrong > 0).sum()), "violations": ends["violations"].mean()}
        )  # fmt: skip
    return found
