"""The table of docs/researchers/worlds.md: policies with late and lost clicks, another screen and another reward.

Each world differs from the paper's in one thing. Regret, violations and wrong certificates are means over queries and
repetitions, a run; the standard error of regret is that within the queries. Played by ``benchmarks/figures.py worlds``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank import simulate
from saferank.instances import Instance
from saferank.reporting.frames import KEYS, run_values

POLICIES = ("safe-draw", "kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")
WORLDS: dict[str, dict[str, Any]] = {
    "none": {},
    "delay 100": {"delay": 100},
    "delay geometric:1000": {"delay": "geometric:1000"},
    "lost-pages 0.1": {"lost_pages": 0.1},
    "lost-clicks 0.1": {"lost_clicks": 0.1},
    "layout 2,1,3,4,5": {"layout": [2, 1, 3, 4, 5]},
    "reward dcg": {"reward": "dcg"},
}
K = 5


def every(instances: Sequence[Instance], distance: int) -> list[Instance]:
    """Every ``distance``-th query, beginning with the first."""
    ids = list(dict.fromkeys(instance.id for instance in instances))
    chosen = set(ids[::distance])
    return [instance for instance in instances if instance.id in chosen]


def measured(instances: Sequence[Instance], world: str) -> list[dict[str, Any]]:
    """A row for each policy in a world, under the click model of these instances."""
    results = simulate(
        instances, POLICIES, K, 100_000, 4, "anytime:1e-5", 11, checkpoints=[100_000], progress=False,
        world=WORLDS[world],
    )  # fmt: skip
    assert results.runs is not None
    by_policy: dict[str, list[Any]] = {}
    for part in results.runs.partition_by(KEYS, maintain_order=True):
        by_policy.setdefault(part["policy"][0], []).append(run_values(part, 4).values[:, -1])
    return [_row(policy, np.array(values)) for policy, values in by_policy.items()]


def _row(policy: str, values: Any) -> dict[str, Any]:
    """Means of the values by query, repetition and measure."""
    regret, violations, wrong = values[:, :, :3].mean(axis=(0, 1)).tolist()
    within = values[:, :, 0].std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    error = float(np.sqrt((within**2).sum()) / len(within))
    return {"policy": policy, "regret": regret, "stderr": error, "violations": violations, "wrong_certificates": wrong}
