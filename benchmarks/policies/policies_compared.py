"""All policies on real or embedded queries: regret, violations, clicks of the worst page and of the first pages.

    python benchmarks/policies/policies_compared.py INSTANCES.json --repetitions 20 --json build/compared.json
    python benchmarks/policies/policies_compared.py embedded --half held-out

The queries are split in two halves, every second one: safe-draw was developed on the first (``development``), the
second was kept away (``held-out``). Each is played as it is, with its items rearranged so that the original ranking is
optimal, and so that it holds none of the best K.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from saferank import simulate
from saferank.instances import Instance, choose_instances
from saferank.reporting.frames import KEYS, run_values

ARRANGEMENTS = ("as it is", "optimal", "none of the best")
POLICIES = ("safe-draw", "kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")
CHECKPOINTS = (50, 100, 1000, 10_000, 100_000)
K = 5


def rearranged(instance: Instance, arrangement: str) -> Instance:
    """The query with its items in another order of production's."""
    if arrangement == "as it is":
        return instance
    best_first = np.argsort(-instance.model.attraction, kind="stable")
    best = set(best_first[:K].tolist())
    others = [item for item in range(len(best_first)) if item not in best]
    order = best_first if arrangement == "optimal" else np.array(others + sorted(best))
    model = instance.model
    for name in ("attraction", "satisfaction"):
        if hasattr(model, name):
            model = model._replace(**{name: getattr(model, name)[order].copy()})
    return replace(instance, id=f"{instance.id} ({arrangement})", model=model)


def half_of(instances: Sequence[Instance], half: str) -> list[Instance]:
    """Every second query, the first one or the second one first; or all."""
    ids = list(dict.fromkeys(instance.id for instance in instances))
    chosen = set({"development": ids[0::2], "held-out": ids[1::2], "all": ids}[half])
    return [instance for instance in instances if instance.id in chosen]


def across(values: Any) -> tuple[float, float]:
    """Mean over queries of the means of runs, and its standard error within queries (the queries are given)."""
    within = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else np.zeros(len(values))
    return float(values.mean()), float(np.sqrt((within**2).sum()) / len(values))


def measured(instances: Sequence[Instance], policy: str, repetitions: int, seed: int, rule: str) -> dict[str, Any]:
    """One row of the table."""
    results = simulate(
        instances,
        policies=[policy],
        positions=K,
        rounds=CHECKPOINTS[-1],
        repetitions=repetitions,
        rule=rule,
        seed=seed,
        checkpoints=CHECKPOINTS,
        progress=False,
    )
    assert results.runs is not None
    parts = results.runs.partition_by(KEYS, maintain_order=True)
    runs = np.array(
        [run_values(part, repetitions).values for part in parts]
    )  # [query, repetition, checkpoint, measure]
    regret, stderr = across(runs[:, :, -1, 0])
    return {
        "policy": policy,
        "queries": len(runs),
        "regret": regret,
        "stderr": stderr,
        "stderr_across_queries": float(runs[:, :, -1, 0].mean(axis=1).std(ddof=1) / np.sqrt(len(runs))),
        "regret_999": float(np.quantile(runs[:, :, -1, 0], 0.999)),
        "violations": float(runs[:, :, -1, 1].mean()),
        "wrong_certificates": float(runs[:, :, -1, 2].mean()),
        "worst_page": float(runs[:, :, -1, 4].mean(axis=1).mean()),
        "worst_page_of_all": float(runs[:, :, -1, 4].min()),
        "clicks_relative": [float(runs[:, :, number, 3].mean()) for number in range(len(CHECKPOINTS))],
    }


COLUMNS = "queries, model, policy, regret (s.e.), 99.9 %, violations, wrong, worst page, first 50 / 100 / 1000 / 10000"
HEAD = "| " + COLUMNS.replace(", ", " | ") + " |"


def line(arrangement: str, model: str, row: dict[str, Any]) -> str:
    """A row for people."""
    first = " / ".join(f"{value:.3f}" for value in row["clicks_relative"][:-1])
    return (
        f"| {arrangement} | {model} | {row['policy']} | {row['regret']:,.0f} ({row['stderr']:.0f}) "
        f"| {row['regret_999']:,.0f} | {row['violations']:,.1f} | {row['wrong_certificates']:.3f} "
        f"| {row['worst_page']:.2f} | {first} |"
    )


def main() -> None:
    """Play, print a table, keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("instances", help="an instance file, or embedded")
    parser.add_argument("--half", choices=("development", "held-out", "all"), default="all")
    parser.add_argument("--models", default="pbm,cm")
    parser.add_argument("--arrangements", default=",".join(ARRANGEMENTS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rule", default="anytime:1e-5")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    instances, rows, started = half_of(choose_instances(chosen.instances), chosen.half), [], time.perf_counter()
    print(HEAD, "|---" * 9 + "|", sep="\n", flush=True)
    for arrangement in chosen.arrangements.split(","):
        for model in chosen.models.split(","):
            played = [rearranged(each, arrangement) for each in instances if each.model_name == model]
            for policy in chosen.policies.split(","):
                row = measured(played, policy, chosen.repetitions, chosen.seed, chosen.rule)
                rows.append({"half": chosen.half, "arrangement": arrangement, "model": model, **row})
                print(line(arrangement, model, row), flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s")
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
