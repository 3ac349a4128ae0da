"""Large catalogues: clicks relative to the original ranking, on planted worlds made from a seed.

    python benchmarks/policies/large_worlds.py [--items 200] [--positions 10] [--worlds 24] [--pages 100000] [--orders]

A world: attractions of L items are log-normal (sigma .6, mean .2, at most .95); production ranks them by the logarithm
of attraction plus normal noise (sigma .5), shows the first K and has the others as candidates in that order; users
follow PBM with examination k^-.7. At L = 200 the best ranking has about a third more clicks than the original.
Development worlds have other seeds than held-out ones. A row of the table is the mean over worlds of the clicks per
page from the first page to the checkpoint, relative to the original's, in percent, with its standard error.

``--orders`` plays safe-draw with the candidates in other orders than production's: one at random, and the reverse. The
context has the same items each time, by the same numbers; only the order that its calls give differs.
"""

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from saferank.click_models.pbm import PBM
from saferank.instances import Instance
from saferank.policies import policy_kind
from saferank.policies.registry import VARIANTS
from saferank.simulation.experiment import Cell, Plan, cells_of, run
from saferank.verbs import Call, Floats, Items, expected_clicks

SPREAD, MEAN, NOISE, DECAY = 0.6, 0.2, 0.5, 0.7
DEVELOPMENT, HELD_OUT = 7, 8
"""First words of the seeds."""

CHECKPOINTS = (1_000, 10_000, 100_000)
POLICIES = ("safe-draw", "kl-ucb-br", "uni-rank", "top-rank")

ORDERS: dict[str, Callable[[Items], Items]] = {
    "random": lambda candidates: np.random.default_rng([HELD_OUT, len(candidates)]).permutation(candidates),
    "reversed": lambda candidates: candidates[::-1],
}
"""Orders of a call's candidates, made of production's."""


def register_orders() -> list[str]:
    """Let safe-draw be played with every order; returns the names, production's order first."""
    kind = policy_kind("safe-draw")

    def planned(order: str, policy: Any, evidence: Any, call: Call) -> Any:
        assert kind.plan is not None
        return kind.plan(policy, evidence, call._replace(candidates=ORDERS[order](call.candidates).copy()))

    for name in ORDERS:
        variant = replace(kind, name=f"{kind.name}:{name}", plan=functools.partial(planned, name))
        VARIANTS[variant.name] = variant
    return [kind.name, *(f"{kind.name}:{name}" for name in ORDERS)]


def planted_world(number: int, n_items: int, seed: int = DEVELOPMENT, n_positions: int = 10) -> Instance:
    """World number ``number``."""
    random = np.random.default_rng([seed, number])
    attraction = np.exp(SPREAD * random.standard_normal(n_items))
    attraction = np.minimum(0.95, MEAN * attraction / np.exp(SPREAD**2 / 2))
    score = np.log(attraction) + NOISE * random.standard_normal(n_items)
    model = PBM(attraction[np.argsort(-score)], np.arange(1, n_positions + 1, dtype=np.float64) ** -DECAY)
    return Instance(f"planted-{seed}-{number}", model, "pbm", tuple(map(str, range(n_items))))


def relative_clicks(cell: Cell) -> tuple[Floats, float, float]:
    """One run: clicks relative to the original by checkpoint, in percent, violations and wrong certificates."""
    rows = run(cell, 0)
    original = float(expected_clicks(cell.world.model, np.arange(cell.plan.n_positions, dtype=np.uint32)))
    clicks = cell.world.best - rows[:, 0] / cell.checkpoints
    return 100 * (clicks / original - 1), float(rows[-1, 1]), float(rows[-1, 2])


def best_gain(world: Instance) -> float:
    """Clicks of the best ranking relative to the original, in percent."""
    attraction, examination = world.model.attraction, world.model.examination
    n_positions = len(examination)
    best = np.sort(attraction)[::-1][:n_positions] @ examination
    return float(100 * (best / (attraction[:n_positions] @ examination) - 1))


def measured(name: str, worlds: list[Instance], rule: str, pages: int) -> dict[str, Any]:
    """One policy in all worlds: means over them of relative clicks by checkpoint, violations and wrong certificates."""
    checkpoints = tuple(c for c in CHECKPOINTS if c <= pages)
    positions = len(worlds[0].model.examination)
    plan = Plan((name,), positions, rounds=pages, repetitions=1, rule=rule, seed=1, checkpoints=checkpoints)
    cells = cells_of(worlds, plan)
    run(cells_of(worlds, Plan((name,), positions, rounds=1, repetitions=1, rule=rule))[0], 0)  # compile, or load
    started = time.process_time()
    runs = [relative_clicks(cell) for cell in cells]
    microseconds = (time.process_time() - started) / len(cells) / pages * 1e6
    gains = np.array([gain for gain, _, _ in runs])
    errors = gains.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else np.full(len(checkpoints), np.nan)
    return {
        "policy": name,
        "worlds": len(worlds),
        "best_percent": float(np.mean([best_gain(world) for world in worlds])),
        "pages": list(checkpoints),
        "gain_percent": gains.mean(axis=0).tolist(),
        "stderr": errors.tolist(),
        "violations": float(np.mean([run[1] for run in runs])),
        "wrong_certificates": float(np.mean([run[2] for run in runs])),
        "cpu_us_a_page": microseconds,
    }


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    gains = zip(row["gain_percent"], row["stderr"], strict=True)
    columns = " ".join(f"{mean:+7.1f} ({error:3.1f})" for mean, error in gains)
    return (
        f"{row['policy']:16s} {columns} {row['violations']:11.1f} {row['wrong_certificates']:6.2f} "
        f"{row['cpu_us_a_page']:7.1f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--positions", type=int, default=10)
    parser.add_argument("--worlds", type=int, default=24)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--rule", default="anytime:1e-5")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--orders", action="store_true")
    options = parser.parse_args()
    seed = HELD_OUT if options.held_out else DEVELOPMENT
    worlds = [planted_world(number, options.items, seed, options.positions) for number in range(options.worlds)]
    kind = "held-out" if options.held_out else "development"
    gain = np.mean([best_gain(world) for world in worlds])
    print(
        f"L = {options.items}, K = {options.positions}, {options.worlds} {kind} worlds, rule {options.rule}; "
        f"best {gain:+.1f} %"
    )
    heads = " ".join(f"{f'at {c:,}':>13s}" for c in CHECKPOINTS if c <= options.pages)
    print(f"{'policy':16s} {heads} {'violations':>11s} {'wrong':>6s} {'us/page':>7s}")
    for name in register_orders() if options.orders else options.policies.split(","):
        print(line(measured(name, worlds, options.rule, options.pages)), flush=True)


if __name__ == "__main__":
    main()
