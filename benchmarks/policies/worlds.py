"""The table of docs/researchers/worlds.md: policies with late and lost clicks, another screen and another reward.

    python benchmarks/policies/worlds.py INSTANCES.json --every 6

Each world differs from the paper's in one thing. Regret, violations and wrong certificates are means over queries and
repetitions, a run; the standard error of regret is that within the queries.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank import simulate
from saferank.instances import Instance, choose_instances
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
    """Every so many of the queries, beginning with the first."""
    ids = list(dict.fromkeys(instance.id for instance in instances))
    chosen = set(ids[::distance])
    return [instance for instance in instances if instance.id in chosen]


def rows(instances: Sequence[Instance], world: str, options: argparse.Namespace) -> list[str]:
    """The rows of a world under one click model."""
    results = simulate(
        instances,
        policies=options.policies.split(","),
        positions=K,
        rounds=options.rounds,
        repetitions=options.repetitions,
        rule=options.rule,
        seed=options.seed,
        checkpoints=[options.rounds],
        jobs=1,
        progress=False,
        world=WORLDS[world],
    )
    assert results.runs is not None
    by_policy: dict[str, list[Any]] = {}
    for part in results.runs.partition_by(KEYS, maintain_order=True):
        by_policy.setdefault(part["policy"][0], []).append(run_values(part, options.repetitions).values[:, -1])
    model = instances[0].model_name
    return [_line(model, world, policy, np.array(values)) for policy, values in by_policy.items()]


def _line(model: str, world: str, policy: str, values: Any) -> str:
    """A row from the values by query, repetition and measure."""
    regret, violations, wrong = values[:, :, :3].mean(axis=(0, 1))
    within = values[:, :, 0].std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    error = float(np.sqrt((within**2).sum()) / len(within))
    return f"| {model} | {world} | {policy} | {regret:,.0f} ({error:,.0f}) | {violations:,.1f} | {wrong:.3f} |"


def main() -> None:
    """Play and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("instances", help="an instance file, or embedded")
    parser.add_argument("--every", type=int, default=1, help="only every so many of the queries")
    parser.add_argument("--models", default="pbm,cm")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rule", default="anytime:1e-5")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    models = options.models.split(",")
    chosen, started = every(choose_instances(options.instances, models), options.every), time.process_time()
    print("| model | world | policy | regret (s.e.) | violations | wrong certificates |", "|---" * 6 + "|", sep="\n")
    for model in models:
        played = [instance for instance in chosen if instance.model_name == model]
        for world in WORLDS:
            print("\n".join(rows(played, world, options)), flush=True)
    queries = len({instance.id for instance in chosen})
    print(f"\n{queries} queries, {options.repetitions} repetitions, {time.process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()
