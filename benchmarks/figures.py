"""Measure every figure that README and docs quote, on this commit, into docs/reference/figures.json.

    make figures                               # all of them, then the tables of the documentation
    python benchmarks/figures.py load replay   # some; the others keep the commit that they were measured on

A measurement is a function of this file; its name is its key. What it returns is kept beside the commit, the machine
and the time it took, and ``docs/generate.py`` makes the tables from it. The real queries (``--instances``) do not come
with the repository; on a set of your own (``saferank fit`` makes one) the same tables come out for your queries.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
for _beside in ("service", "logs", "policies", "package"):
    sys.path.insert(0, str(ROOT / "benchmarks" / _beside))

from machine import machine  # noqa: E402 (beside this file)

FILE = ROOT / "docs" / "reference" / "figures.json"
REAL = ROOT.parent / "shared" / "data" / "yandex60.json"
PAGES = REAL.with_name("yandex-pages.ndjson.gz")
BUILD = ROOT / "build" / "figures"

WITHOUT_TRUST = "safe-draw:trust=0.5"
RULES = {
    "safe-draw": "anytime:1e-5",
    WITHOUT_TRUST: "anytime:1e-5",
    "kl-ucb-br": "paper:1e-5",
    "bubble-rank": "paper:1e-5",
}
"""The rule of each policy that takes one, as the tables name it."""
REPETITIONS = {"safe-draw": 20, WITHOUT_TRUST: 20}
USUAL_REPETITIONS = 5

Measured = Any
"""What a measurement found, as JSON."""

MEASUREMENTS: dict[str, Callable[[Path], Measured]] = {}


def measurement(function: Callable[[Path], Measured]) -> Callable[[Path], Measured]:
    """Offer a function, which is given the file of real queries, under its name."""
    MEASUREMENTS[function.__name__] = function
    return function


# --- the simulator ---


@measurement
def rounds(_: Path) -> Measured:
    """Nanoseconds of a round beside the bare loop, all policies under PBM and CM."""
    from saferank.experiments.bench import bench

    return bench(None, ["pbm", "cm"], 100_000, 5).to_dict()


@measurement
def regret(instances: Path) -> Measured:
    """Regret, violations and clicks on both halves of the real queries, as they are and rearranged."""
    policies = ("safe-draw", WITHOUT_TRUST, "uni-rank", "top-rank", "kl-ucb-br", "bubble-rank")
    return list(_compared(instances, ("pbm", "cm"), policies))


@measurement
def one_rule(instances: Path) -> Measured:
    """The policies of the paper with safe-draw's rule, as they are."""
    from policies_compared import half_of, measured

    chosen = half_of(_instances(instances), "all")
    return [
        {"model": model, "rule": rule, **measured(_of_model(chosen, model), policy, USUAL_REPETITIONS, 11, rule)}
        for model in ("pbm", "cm")
        for policy in ("kl-ucb-br", "bubble-rank")
        for rule in ("paper:1e-5", "anytime:1e-5")
    ]


@measurement
def other_models(instances: Path) -> Measured:
    """safe-draw where users follow other click models, all queries as they are."""
    from policies_compared import measured

    chosen = _instances(instances)
    models = ("ubm", "dcm", "dbn", "ccm")
    return [
        {"model": model, **measured(_of_model(chosen, model), "safe-draw", USUAL_REPETITIONS, 11, RULES["safe-draw"])}
        for model in models
    ]


@measurement
def trust(_: Path) -> Measured:
    """First pages of safe-draw: shares that equal production's, and that have its best item first."""
    from saferank import Ranker

    found, seeds = [], 1000
    for shown, items in ((5, 10), (10, 40), (10, 200)):
        for sure in (0.5, 0.92, 0.977, 0.99):
            names = range(items)
            pages = [
                Ranker(
                    "safe-draw",
                    original=names[:shown],
                    candidates=names[shown:],
                    rule="anytime:1e-5",
                    seed=seed,
                    trust=sure,
                ).rank()
                for seed in range(seeds)
            ]
            equal = sum(page.items == tuple(names[:shown]) for page in pages) / seeds
            best = sum(page.items[0] == 0 for page in pages) / seeds
            found.append({"shown": shown, "items": items, "trust": sure, "equal": equal, "best_first": best})
    return found


@measurement
def large(_: Path) -> Measured:
    """Large catalogues: planted worlds that were kept away from the development of safe-draw."""
    from large_worlds import HELD_OUT, measured, planted_world

    found = []
    for items, worlds, policies in (
        (50, 8, ("safe-draw", "kl-ucb-br")),
        (200, 24, ("safe-draw", "kl-ucb-br", "uni-rank")),
        (2_000, 8, ("safe-draw", "kl-ucb-br")),
        (100_000, 8, ("safe-draw", "kl-ucb-br")),
    ):
        made = [planted_world(number, items, HELD_OUT) for number in range(worlds)]
        found += [
            {"items": items, **measured(policy, made, RULES.get(policy, "anytime:1e-5"), 100_000)}
            for policy in policies
        ]
    return found


@measurement
def candidate_order(_: Path) -> Measured:
    """What the order of a call's candidates gives safe-draw: production's, a random one, the reverse."""
    from large_worlds import HELD_OUT, measured, planted_world, register_orders

    made = [planted_world(number, 200, HELD_OUT) for number in range(24)]
    return [measured(name, made, RULES["safe-draw"], 10_000) for name in register_orders()]


@measurement
def drift(instances: Path) -> Measured:
    """Certificates with a lifetime in worlds that change, on every third query."""
    from drift import every, measured

    chosen = every(_instances(instances), 3)
    found = []
    all_worlds = ("none", "original", "reversed", "slow", "arrivals", "departures")
    for model, worlds in (("pbm", all_worlds), ("cm", ("none", "original"))):
        for world in worlds:
            rows = measured(
                _of_model(chosen, model),
                world,
                policies=["kl-ucb-br", "safe-draw", "original"],
                lifetimes=[None, 10_000, 30_000],
                rounds=100_000,
                repetitions=2,
                rule="anytime:1e-5",
                seed=11,
            )
            found += [{"model": model, "world": world, **row} for row in rows]
    return found


@measurement
def worlds(instances: Path) -> Measured:
    """Late and lost clicks, another screen and another reward, on every sixth query."""
    from worlds import WORLDS, every, measured

    chosen = every(_instances(instances), 6)
    return [
        {"model": model, "world": world, **row}
        for model in ("pbm", "cm")
        for world in WORLDS
        for row in measured(_of_model(chosen, model), world)
    ]


@measurement
def model_wrong(instances: Path) -> Measured:
    """Policies that are made for one click model beside others, under six, on the embedded and the real queries."""
    from model_wrong import measured

    from saferank import embedded_instances

    sets = {"embedded set": embedded_instances(20), instances.name: _instances(instances)}
    return {title: measured(chosen) for title, chosen in sets.items()}


@measurement
def satisfaction(_: Path) -> Measured:
    """safe-draw where items satisfy differently, which its proof does not cover: eight items, all of them shown."""
    from satisfaction import measured

    return measured()


@measurement
def real_pages(_: Path) -> Measured:
    """A log of real pages: models, policies and swaps, as tables; draws its two pictures as well."""
    from real_pages import Asked, measured

    out = BUILD / "real-pages"
    found = measured(Asked(PAGES, out, "35,064 real pages", repetitions=10))
    for name in ("real-pages-policies.svg", "real-pages-pairs.svg"):
        shutil.copyfile(out / name, ROOT / "docs" / "images" / name)
    return {name: text.splitlines() for name, text in found.items()}


@measurement
def forecast(_: Path) -> Measured:
    """Extra clicks a day in each of 13 weeks, with bands, foreseen from a synthetic log."""
    from saferank import forecast as make_forecast
    from saferank.logs.synthetic import synthesize_log

    with _folder() as folder:
        synthesize_log(folder / "log", 40_000, 15, "pbm", seed=4, progress=False)
        found = make_forecast(
            folder / "log", "yandex-personalized", 4000, positions=5, replicates=8, most_pages=25_000, iterations=100,
            certificate_days=0, progress=False,
        )  # fmt: skip
    return {policy.policy: policy.weeks for policy in found.policies}


# --- first minutes, live ranker, logs ---


@measurement
def first_runs(_: Path) -> Measured:
    """Processor time, wall time and memory of first runs with nothing compiled, and of second ones."""
    from first_runs import CASES, cost_of

    found = []
    for name, code in CASES.items():
        with tempfile.TemporaryDirectory() as cache:
            for again in (False, True):
                cpu, wall, memory = cost_of(code, cache)
                found.append({"name": name, "again": again, "cpu_s": cpu, "wall_s": wall, "memory_mb": memory})
    return found


@measurement
def live(_: Path) -> Measured:
    """A ranker over 100,000 items."""
    from large_catalogue import measure

    policies, sizes = ("kl-ucb-br", "safe-draw"), (10, 50)
    return [{"policy": name, "k": k, **measure(name, 100_000, k, 20_000)} for name in policies for k in sizes]


@measurement
def logs(_: Path) -> Measured:
    """MB a second of reading and counting a click log."""
    from reading_logs import measured

    return measured()


@measurement
def imports(_: Path) -> Measured:
    """Seconds until saferank is imported, bytecode there."""
    from import_time import seconds

    return {name: seconds(f"from saferank import {name}") for name in ("simulate", "Ranker")}


@measurement
def demo(_: Path) -> Measured:
    """The claims of the paper on the synthetic log of ``make demo``."""
    from saferank import reproduce

    made = reproduce(BUILD / "demo", overwrite=True, progress=False)
    assert made.report is not None
    verdicts = [claim.verdict for claim in made.report.claims if claim.of_the_paper]
    return {"claims": len(verdicts), **{name: verdicts.count(name) for name in sorted(set(verdicts))}}


# --- the service ---


@measurement
def call_cost(_: Path) -> Measured:
    """Processor time of a rank call and of a report, beside a bare echo of the same size."""
    from call_cost import measured

    return measured()


@measurement
def call_walk(_: Path) -> Measured:
    """Modules and Python calls of a warm rank call, of a report and of the closing that learns it."""
    from call_walk import measured

    return measured()


@measurement
def load(_: Path) -> Measured:
    """A server under a load of 300, then of 1,000 pages and reports a second, with twice the rate in between."""
    from service_load import measure

    found = {}
    for rate in (300, 1000):
        options = argparse.Namespace(rate=float(rate), seconds=15.0, shelves=50, window=10.0, set=[])
        with _folder() as folder:
            run = measure(options, folder)
        found[str(rate)] = {name: run[name] for name in ("fsync_ms", "ready_seconds", "phases", "store_mb")}
    return found


@measurement
def overload(_: Path) -> Measured:
    """What is left of the capacity at three times the load."""
    from overload import run
    from service_process import ServiceProcess

    settings = {"policy": "safe-draw", "window_seconds": 10, "log_level": "warning"}
    with _folder() as folder, ServiceProcess(folder, **settings) as service:
        found = run(service, 3.0, 10.0)
        service.stop()
    return found


@measurement
def replay(_: Path) -> Measured:
    """A store of a million pages: start and replay."""
    from replay import measured

    return measured(1_000_000)


@measurement
def faults(_: Path) -> Measured:
    """Two servers on a PostgreSQL: kills, pauses, cut connections, clocks that jump, and kill switches all the time."""
    test = "tests/acceptance/service/test_faults.py"
    environment = {**os.environ, "SAFERANK_FAULTS": "16"}
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", test]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = re.search(r"(\d+) faults: (\d+) pages, (\d+) acknowledged, (\d+) late, (\d+) kill switches", ran.stdout)
    if ran.returncode or said is None:
        raise SystemExit(f"the test of faults failed:\n{ran.stdout[-4000:]}")
    names = ("faults", "pages", "acknowledged", "late", "kill_switches")
    return dict(zip(names, map(int, said.groups()), strict=True))  # lost, counted twice: none, or the test fails


@measurement
def broken_assumptions(_: Path) -> Measured:
    """How often two equal items are declared decided when clicks come late, twice, not at all or from spam."""
    from equal_items import false_rate, rows

    return [
        {"what": what, "as_it_comes": false_rate(raw), "by_the_service": remedy and false_rate(remedy)}
        for what, raw, remedy in rows()
    ]


# --- what they share ---


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder beside this project: a temporary one may be in memory, where fsync is free."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        yield Path(name)


def _instances(file: Path) -> Any:
    from saferank.instances import choose_instances

    return choose_instances(str(file))


def _of_model(instances: Any, model: str) -> Any:
    return [instance for instance in instances if instance.model_name == model]


def _compared(file: Path, models: tuple[str, ...], policies: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    from policies_compared import ARRANGEMENTS, half_of, measured, rearranged

    for half in ("held-out", "development"):
        for arrangement in ARRANGEMENTS:
            for model in models:
                chosen = _of_model(half_of(_instances(file), half), model)
                played = [rearranged(each, arrangement) for each in chosen]
                for policy in policies:
                    rule, times = RULES.get(policy, "anytime:1e-5"), REPETITIONS.get(policy, USUAL_REPETITIONS)
                    row = measured(played, policy, times, 11, rule)
                    where = {"half": half, "arrangement": arrangement, "model": model}
                    yield {**where, "rule": RULES.get(policy), "repetitions": times, **row}


def _commit() -> str:
    changed = subprocess.check_output(["git", "status", "--porcelain", "src", "benchmarks"], cwd=ROOT, text=True)
    if changed:
        raise SystemExit(f"commit first: figures are of a commit, and these files differ from it:\n{changed}")
    newest = [
        "git",
        "log",
        "-1",
        "--format=%h",
        "--abbrev=10",
        "--",
        "src",
    ]  # later ones changed words, not what is measured
    return subprocess.check_output(newest, cwd=ROOT, text=True).strip()


def _rounded(value: Any) -> Any:
    """Numbers with five digits: the file is read by people, too."""
    if isinstance(value, dict):
        return {str(name): _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.5g}")
    return value


def _row_by_row(kept: dict[str, Any]) -> str:
    """JSON with a line for each innermost object or list: the file is read by people, and its changes are reviewed."""
    text = json.dumps(kept, indent=1)
    return re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda found: re.sub(r"\n\s*", " ", found[0]), text) + "\n"


def main() -> None:
    """Measure what is asked for, one after the other, and keep each as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="measurements: " + ", ".join(MEASUREMENTS))
    parser.add_argument("--instances", type=Path, default=REAL, help="click-model parameters of real queries")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"unknown measurement {unknown[0]!r}; known ones: {', '.join(MEASUREMENTS)}")
    chosen = options.names or [name for name in MEASUREMENTS if name != "real_pages" or PAGES.exists()]
    if not options.instances.exists():
        parser.error(f"{options.instances} does not exist; give a set of your own with --instances")
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for number, name in enumerate(chosen, 1):
        about = " ".join((MEASUREMENTS[name].__doc__ or "").split())
        print(f"[{number}/{len(chosen)}] {name}: {about}", flush=True)
        commit, where, began = _commit(), machine(), time.perf_counter()
        found = MEASUREMENTS[name](options.instances)
        seconds = time.perf_counter() - began
        about_it = {"commit": commit, "machine": where, "seconds": round(seconds), "instances": options.instances.name}
        kept[name] = {"about": about, **about_it, "measured": _rounded(found)}
        FILE.write_text(_row_by_row(dict(sorted(kept.items()))), encoding="utf-8")
        print(f"    {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
