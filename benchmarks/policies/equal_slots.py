"""False certificates of safe-draw in large catalogues when all items are equal, per pair that was bet on, by level.

    python benchmarks/policies/equal_slots.py [--items 50] [--runs 20] [--pages 50000]

A pair has two directions, each certified with probability at most alpha over all time.
"""

import argparse

import numpy as np

from saferank.click_models.cm import CM
from saferank.click_models.pbm import PBM
from saferank.policies import Setup, make_room, policy_kind
from saferank.randomness import stream
from saferank.safety import judge_of
from saferank.simulation.rounds import Table, World, new_tally, play
from saferank.statistics.decision import decision_rule
from saferank.verbs import new_impression

POSITIONS = 10
ATTRACTION = 0.2


def certified_pairs(model: CM | PBM, n_items: int, alpha: float, pages: int, seed: int) -> tuple[int, int]:
    """Pairs that were certified, and pairs that were bet on."""
    kind, setup = policy_kind("safe-draw"), Setup(n_items, POSITIONS, decision_rule(f"anytime:{alpha}"))
    policy, evidence = kind.start(setup)
    plan = kind.empty_plan(policy, evidence, setup.first_call())
    judge = judge_of(model.attraction, np.arange(POSITIONS, dtype=np.uint32))
    world, tally = World(model, 0.0, judge, 1.0), new_tally(np.zeros(0, np.int64))
    page, clicks = new_impression(POSITIONS, kind.places(n_items, POSITIONS)), np.zeros(POSITIONS, np.int64)
    rngs = stream(seed, "policy"), stream(seed, "users"), stream(seed, "users")
    while tally.rounds[0] < pages:
        policy, evidence = make_room(kind, setup, policy, evidence, len(page.ranking))
        play(policy, evidence, plan, world, Table(page, clicks, evidence.duels.certificates, *rngs), tally, pages)
    return int(evidence.duels.certificates.given[0]), int(evidence.duels.pairs.used[0]) - 1


def main() -> None:
    """Print a row for each click model and level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pages", type=int, default=50_000)
    options = parser.parse_args()
    attraction = np.full(options.items, ATTRACTION)
    examination = np.arange(1, POSITIONS + 1, dtype=np.float64) ** -0.7
    models: dict[str, CM | PBM] = {"pbm": PBM(attraction, examination), "cm": CM(attraction)}
    for name, model in models.items():
        for alpha in (0.05, 0.01, 0.001):
            seeds = range(options.runs)
            found = np.array([certified_pairs(model, options.items, alpha, options.pages, seed) for seed in seeds])
            certified, pairs = found.sum(axis=0)
            error = (found[:, 0] / found[:, 1]).std(ddof=1) / options.runs**0.5
            share = certified / pairs
            print(f"{name} alpha {alpha}: {certified} of {pairs} pairs, {share:.5f} ({error:.5f})", flush=True)


if __name__ == "__main__":
    main()
