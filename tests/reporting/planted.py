"""Planted results: curves of which every claim of the paper is true, to be made false one by one."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from saferank.reporting.claims import ALL, NONE_OF_BEST, OPTIMAL
from saferank.reporting.frames import runs_frame, write_runs
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs

ROUNDS = (1, 10, 100, 1000, 10_000)
REGRET = {
    "best": {"original": 0.0, "kl-ucb-br": 10.0, "bubble-rank": 20.0, "top-rank": 40.0, "uni-rank": 50.0},
    "worst": {"original": 1000.0, "kl-ucb-br": 300.0, "bubble-rank": 950.0, "top-rank": 50.0, "uni-rank": 60.0},
    "other": {"original": 500.0, "kl-ucb-br": 200.0, "bubble-rank": 300.0, "top-rank": 80.0, "uni-rank": 70.0},
}
VIOLATIONS = {"top-rank": 30.0, "uni-rank": 20.0}
QUERIES = {ALL: tuple(REGRET), OPTIMAL: ("best",), NONE_OF_BEST: ("worst",)}
SPECIAL = {OPTIMAL: "best", NONE_OF_BEST: "worst"}
RULED = ("kl-ucb-br", "bubble-rank")


def curve(
    policy: str,
    model: str = "pbm",
    instance: str = "q",
    *,
    regret: float = 100.0,
    violations: float = 0.0,
    stderr: float | None = 0.1,
    rule: str | None = None,
    rounds: tuple[int, ...] = ROUNDS,
) -> Result:
    """A result whose regret and violations rise evenly to their ends."""
    grow = [(place + 1) / len(rounds) for place in range(len(rounds))]
    errors = [stderr if policy != "original" or stderr is None else 0.0] * len(rounds)
    return Result(
        instance=instance,
        model=model,
        policy=policy,
        rule=rule,
        positions=5,
        items=10,
        repetitions=1 if stderr is None else 20,
        rounds=list(rounds),
        regret_mean=[regret * share for share in grow],
        regret_stderr=errors,  # type: ignore[arg-type]
        violations_mean=[violations * share for share in grow],
        violations_stderr=[0.0 if violations == 0 and e is not None else e for e in errors],  # type: ignore[arg-type]
        wrong_certificates_mean=[0.0] * len(rounds) if policy.partition(":")[0] in RULED else None,
    )


def true_results(
    models: tuple[str, ...] = ("pbm", "cm"), stderr: float | None = 0.1
) -> dict[tuple[str, str, str], Result]:
    """Results by query, click model and policy, of which every claim is true."""
    return {
        (query, model, policy): curve(
            policy,
            model,
            query,
            regret=regret,
            violations=VIOLATIONS.get(policy, 0.0),
            stderr=stderr,
            rule="paper:1/T" if policy in RULED else None,
        )
        for model in models
        for query, policies in REGRET.items()
        for policy, regret in policies.items()
    }


def write(path: Path, results: list[Result], provenance: Mapping[str, Any] | None = None) -> Path:
    """A results file."""
    source = {"version": "0", "command": "saferank simulate", "seed": 3, "seconds": 1.5, "machine": {"cpus": 2}}
    entries = [asdict(result) for result in results]
    path.write_text(json.dumps({"provenance": {**source, **(provenance or {})}, "results": entries}), encoding="utf-8")
    return path


def reproduction(folder: Path, models: tuple[str, ...] = ("pbm", "cm")) -> Path:
    """What ``saferank reproduce`` leaves: results, sensitivity and study, with the names of everything."""
    write(folder / "sensitivity.json", _sensitivity())
    write(folder / "study.json", _study())
    facts = {
        "profile": "quick",
        "log": {"name": "log.gz", "format": "yandex-personalized", "synthetic": True, "pages": 900, "queries": 3},
        "queries": 3,
        "special": {
            "optimal": {"instance": "best", "wrong_pairs": {"pbm": 0, "cm": 0}},
            "none_of_best": {"instance": "worst", "best_missing": {"pbm": 5, "cm": 4}},
        },
        "rule": "paper:1/T",
        "rounds": 10_000,
        "positions": 5,
        "models": list(models),
        "sensitivity": "sensitivity.json",
        "study": "study.json",
        "study_sets": {"embedded": ["e1", "e2"], "yandex60": ["y1"]},
        "seconds_by_policy": {"kl-ucb-br": 3.0, "uni-rank": 9.0},
        "peak_memory_mb": 321.0,
    }
    results = list(true_results(models).values())
    write_runs(folder / "runs.parquet", runs_frame(results, [runs(result) for result in results]))
    return write(folder / "results.json", results, {"reproduction": facts})


def runs(result: Result) -> Runs:
    """Single runs whose mean is the result: 20 that end evenly around it, and clicks that rise to the original's."""
    around = np.linspace(0.5, 1.5, result.repetitions)
    values = np.zeros((result.repetitions, len(result.rounds), len(MEASURES)))
    values[:, :, 0] = around[:, None] * np.array(result.regret_mean)
    values[:, :, 1] = result.violations_mean
    values[:, :, 3] = np.linspace(0.9, 1.0, len(result.rounds)) * (1.1 - 0.1 * around[:, None])
    values[:, :, 4] = 0.5 + 0.1 * around[:, None]
    return Runs(np.array(result.rounds), values)


def _sensitivity() -> list[Result]:
    made = []
    for model in ("pbm", "cm"):
        for rule, regret in (("paper:1/T", 100.0), ("paper:1e-16", 200.0), ("anytime:1e-4", 75.0)):
            made += [curve(policy, model, "other", regret=regret, rule=rule) for policy in RULED]
        made.append(curve("kl-ucb-br", model, "other (candidates reversed)", regret=101.0, rule="paper:1/T"))
        made.append(curve("bubble-rank:all-candidates", model, "other", regret=120.0, rule="paper:1/T"))
        made.append(curve("bubble-rank:shown-only", model, "worst", regret=99.0, rule="paper:1/T"))
    return made


def _study() -> list[Result]:
    rules = (("paper:1/T", 1000.0), ("anytime:1e-4", 750.0))
    models, queries = ("pbm", "cm", "dcm", "dbn", "ubm", "ccm"), ("e1", "e2", "y1")
    return [curve("kl-ucb-br", m, q, regret=r, rule=rule) for m in models for q in queries for rule, r in rules]
