"""Policies with and without a lifetime of certificates in worlds that change: the tables of docs/algorithms/drift.md.

    python benchmarks/policies/drift.py INSTANCES.json
    python benchmarks/policies/drift.py INSTANCES.json --every 3 --worlds slow,arrivals,departures --models pbm,cm

One table for each world and click model. The change of ``original`` and ``reversed`` (a step) comes after half of the
rounds; ``slow`` moves to the reversed order between a quarter and three quarters of them; in ``arrivals`` and
``departures`` an unranked item comes or leaves after every tenth of them.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank import simulate
from saferank.instances import Instance, choose_instances
from saferank.reporting.frames import KEYS, run_values

POLICIES = ("kl-ucb-br", "bubble-rank", "safe-draw", "original")
WORLDS = ("none", "original", "reversed", "slow", "arrivals", "departures")
K = 5
COLUMNS = "policy, D, regret, regret after, violations before, violations after, wrong before, wrong after"
REGRET, VIOLATIONS, WRONG = 0, 1, 2


def drift_of(world: str, rounds: int) -> str | None:
    """The drift of a world as ``simulate`` takes it; None: nothing changes."""
    middle, tenth = rounds // 2, rounds // 10
    return {
        "none": None,
        "original": f"step:{middle + 1}:original",
        "reversed": f"step:{middle + 1}:reversed",
        "slow": f"slow:{rounds // 4 + 1}:{3 * rounds // 4}:reversed",
        "arrivals": f"arrivals:{tenth}",
        "departures": f"departures:{tenth}",
    }[world]


def every(instances: Sequence[Instance], distance: int) -> list[Instance]:
    """Every ``distance``-th query, beginning with the first."""
    ids = list(dict.fromkeys(instance.id for instance in instances))
    chosen = set(ids[::distance])
    return [instance for instance in instances if instance.id in chosen]


def measured(
    instances: Sequence[Instance],
    world: str,
    *,
    policies: Sequence[str],
    lifetimes: Sequence[int | None],
    rounds: int,
    repetitions: int,
    rule: str,
    seed: int,
) -> list[dict[str, Any]]:
    """A world under one click model, a row for each policy and lifetime: means over queries and repetitions, a run."""
    results = simulate(
        instances,
        policies=policies,
        positions=K,
        rounds=rounds,
        repetitions=repetitions,
        rule=rule,
        seed=seed,
        world=None if (changes := drift_of(world, rounds)) is None else {"drift": changes},
        lifetime=lifetimes,
        checkpoints=[rounds // 2, 6 * rounds // 10, 7 * rounds // 10, rounds],
        progress=False,
    )
    assert results.runs is not None
    runs: dict[tuple[str, int | None], list[Any]] = {}
    for part in results.runs.partition_by(KEYS, maintain_order=True):
        of_curve = run_values(part, repetitions).values
        runs.setdefault((part["policy"][0], part["lifetime"][0]), []).append(of_curve)
    rows = []
    for (policy, lifetime), values in runs.items():
        means = np.array(values).mean(axis=(0, 1))  # [checkpoint, measure]
        half, end = means[0], means[-1]
        rows.append(
            {
                "policy": policy,
                "lifetime": lifetime,
                "queries": len(values),
                "regret": float(end[REGRET]),
                "regret_after": float(end[REGRET] - half[REGRET]),
                "violations_before": float(half[VIOLATIONS]),
                "violations_after": np.diff(means[:, VIOLATIONS]).tolist(),
                "wrong_before": float(half[WRONG]),
                "wrong_after": float(end[WRONG] - half[WRONG]),
            }
        )
    return rows


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    after = " / ".join(f"{number:,.1f}" for number in row["violations_after"])
    return (
        f"| {row['policy']} | {row['lifetime'] or 'none'} | {row['regret']:,.0f} | {row['regret_after']:,.0f} "
        f"| {row['violations_before']:,.1f} | {after} | {row['wrong_before']:.3f} | {row['wrong_after']:.3f} |"
    )


def main() -> None:
    """Play and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("instances", help="an instance file, or embedded")
    parser.add_argument("--every", type=int, default=1, help="take each N-th query only")
    parser.add_argument("--models", default="pbm,cm")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--lifetimes", default="none,10000,20000")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rule", default="anytime:1e-5")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    chosen = every(choose_instances(options.instances), options.every)
    rounds, started = options.rounds, time.process_time()
    print("before: the first half of the rounds; after: the second half. Violations after are those of the rounds")
    print(f"to {6 * rounds // 10:,} / to {7 * rounds // 10:,} / to {rounds:,}. All figures are means a run.")
    for world in options.worlds.split(","):
        for model in options.models.split(","):
            played = [instance for instance in chosen if instance.model_name == model]
            print(f"\n{world} ({drift_of(world, rounds)}), {model}, {len(played)} queries\n")
            print("| " + COLUMNS.replace(", ", " | ") + " |", "|---" * 8 + "|", sep="\n", flush=True)
            rows = measured(
                played,
                world,
                policies=options.policies.split(","),
                lifetimes=[None if text == "none" else int(text) for text in options.lifetimes.split(",")],
                rounds=rounds,
                repetitions=options.repetitions,
                rule=options.rule,
                seed=options.seed,
            )
            print("\n".join(map(line, rows)), flush=True)
    print(f"\n{time.process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()
