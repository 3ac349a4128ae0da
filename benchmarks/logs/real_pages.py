"""A log of real result pages, end to end: the run of docs/researchers/real-pages.md, from any sessions file.

    python benchmarks/logs/real_pages.py SESSIONS --out DIR

1. Which click model foresees held-out pages best? Each page is held out with probability 1/4 (``split``, fixed seed).
2. Regret and violations of eight policies under the best model, PBM and CM, with paired differences.
3. Pairs of neighbours that production showed in both orders: do fitted attractions agree with the swaps
   (``swapped_pairs.py``)? Once with models fitted to all pages, and once with models fitted to one half of the pages
   and swaps counted on the other.

DIR gets ``instances.json``, ``results/`` (of ``saferank.simulate``), ``pairs.csv``, ``tables.md`` and two figures.
``benchmarks/figures.py real_pages`` does the same and keeps the tables for the documentation.
"""

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from real_pages_shown import draw_pairs, draw_policies, tables
from swapped_pairs import READINGS, Agreement, Swap, agreement_of, click_through, significant, swaps_of

from saferank import simulate
from saferank.experiments.results import Results
from saferank.fitting import ESTIMATORS
from saferank.fitting.evaluation import evaluate_model, log_likelihood
from saferank.fitting.export import instances_of
from saferank.instances import Instance, save_instances
from saferank.logs import ClickLog, DistinctPages, read_log, split
from saferank.verbs import Floats

POLICIES = ("original", "kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "safe-draw")
HELD_OUT = 0.25


@dataclass(frozen=True)
class Asked:
    """What is measured, where it goes, and how much is played."""

    sessions: Path
    out: Path
    title: str = "a click log"  # what tables and figures call the log
    format: str = "sessions"
    rounds: int = 100_000
    repetitions: int = 5
    rule: str | None = None  # None: paper:1/T, and anytime:1/T for safe-draw
    iterations: int = 50  # of EM
    fewest: int = 20  # pages of a pair in each order
    seed: int = 0


@dataclass(frozen=True)
class Foresight:
    """One click model on held-out pages; log-likelihoods are of a page, on average."""

    model: str
    log_likelihood: float
    perplexity: float
    impossible: float  # share of pages
    behind: float  # the best model's log-likelihood minus this one's
    behind_error: float  # standard error over pages, paired
    first_click: float  # log-likelihood of what happened down to the first click
    best_on: int  # queries on which this model has the highest log-likelihood
    last_change: float | None  # of the log-likelihood of all fitted pages by the last iteration


@dataclass(frozen=True)
class Verdict:
    """How often one order of items agrees with the swaps."""

    order: str  # a click model, "click-through" or "production"
    reading: str
    all_pairs: Agreement
    significant: Agreement


def foresights(log: ClickLog, iterations: int, seed: int) -> list[Foresight]:
    """All click models, fitted to the pages that are not held out, on those that are; the best one first."""
    seen, unseen = split(log, HELD_OUT, seed)
    fitted = {name: fit(seen, iterations) for name, fit in ESTIMATORS.items()}
    by_page = {name: page_log_likelihoods(each.model, unseen.pages) for name, each in fitted.items()}
    weight, query = unseen.pages.weight, unseen.pages.query
    means = {name: _mean(values, weight) for name, values in by_page.items()}
    best = max(means, key=lambda name: means[name])
    winners = [
        max(by_page, key=lambda name: _mean(by_page[name][query == q], weight[query == q])) for q in np.unique(query)
    ]
    cut = down_to_first_click(unseen.pages)
    rows = []
    for name, each in fitted.items():
        found = evaluate_model(each.model, unseen.pages)
        behind, error = _paired(by_page[best], by_page[name], weight)
        first = log_likelihood(each.model, cut) / weight.sum()
        numbers = found.log_likelihood, found.perplexity, found.impossible, behind, error, first
        rows.append(Foresight(name, *numbers, winners.count(name), each.last_change))
    return sorted(rows, key=lambda row: -row.log_likelihood)


def page_log_likelihoods(model: Any, pages: DistinctPages) -> Floats:
    """The log-likelihood of each distinct page, once."""
    query, items, clicks, weight = pages
    once = np.ones_like(weight)
    parts = (slice(n, n + 1) for n in range(len(weight)))
    return np.array([log_likelihood(model, DistinctPages(query[n], items[n], clicks[n], once[n])) for n in parts])


def _mean(values: Floats, weight: Any) -> float:
    return float(values @ weight / weight.sum())


def _paired(best: Floats, other: Floats, weight: Any) -> tuple[float, float]:
    """The mean difference over pages and its standard error; infinite and unknown if a page is impossible."""
    difference = best - other
    if np.isinf(difference).any():
        return math.inf, math.nan
    mean, n = _mean(difference, weight), weight.sum()
    return mean, math.sqrt(_mean((difference - mean) ** 2, weight) / (n - 1))


def down_to_first_click(pages: DistinctPages) -> DistinctPages:
    """The pages without what is below their first click: what a model with at most one click can be compared on."""
    below = np.cumsum(pages.clicks, axis=1) - pages.clicks > 0
    return pages._replace(
        items=np.where(below, -1, pages.items), clicks=np.where(below, 0, pages.clicks).astype(pages.clicks.dtype)
    )


def fits(log: ClickLog, iterations: int) -> dict[str, Any]:
    """All click models of the log."""
    return {name: fit(log, iterations).model for name, fit in ESTIMATORS.items()}


def scores_of(log: ClickLog, models: Mapping[str, Any]) -> dict[str, Floats]:
    """Scores of all pairs of query and item: the attraction of every click model, and the plain click-through."""
    attraction = {name: model.attraction for name, model in models.items()}
    return {**attraction, "click-through": click_through(log.pages, len(log.pairs))}


def verdicts(log: ClickLog, scores: Mapping[str, Floats], fewest: int) -> list[Verdict]:
    """Every score, and production's more frequent order, beside the swaps of the log."""
    rows = []
    for reading, same_page in (*((reading, False) for reading in READINGS), ("between", True)):
        swaps = swaps_of(log, reading, fewest=fewest, same_page=same_page)
        clear = significant(swaps)
        name = f"{reading}, same page" if same_page else reading
        for order, score in scores.items():
            rows.append(Verdict(order, name, agreement_of(swaps, score), agreement_of(clear, score)))
        rows.append(Verdict("production", name, agreement_of(swaps), agreement_of(clear)))
    return rows


def played(instances: Sequence[Instance], models: Sequence[str], out: Path, options: Asked) -> Results:
    """All policies under these click models, in this order."""
    return simulate(
        [instance for model in models for instance in instances if instance.model_name == model],
        policies=POLICIES,
        rounds=options.rounds,
        repetitions=options.repetitions,
        rule=options.rule,
        seed=options.seed,
        out=out,
        overwrite=True,
        progress=False,
    )


def write_pairs(path: Path, log: ClickLog, swaps: Sequence[Swap], scores: Mapping[str, Floats]) -> None:
    """The pairs of one reading as a table: what the swaps say, and the scores of both items."""
    names = [f"{name} {item}" for name in scores for item in ("a", "b")]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "item a", "item b", *Swap._fields[3:], *names])
        for swap in swaps:
            values = [float(score[pair]) for score in scores.values() for pair in (swap.a, swap.b)]
            items = log.pairs[swap.a][1], log.pairs[swap.b][1]
            writer.writerow([log.queries[swap.query], *items, *swap[3:], *values])


def measured(options: Asked) -> dict[str, str]:
    """All tables in Markdown, by name; the figures and the other files are in the folder."""
    options.out.mkdir(parents=True, exist_ok=True)
    log = read_log(options.sessions, options.format, page_length=None)
    ranks = foresights(log, options.iterations, options.seed)
    models = list(dict.fromkeys([ranks[0].model, "pbm", "cm"]))
    fitted = fits(log, options.iterations)
    instances = instances_of(log, fitted)
    save_instances(options.out / "instances.json", instances, f"fitted to {options.title}")
    scores = scores_of(log, fitted)
    half, other = split(log, 0.5, options.seed)
    found = {
        "swaps": verdicts(log, scores, options.fewest),
        "swaps-other-half": verdicts(other, scores_of(half, fits(half, options.iterations)), options.fewest),
    }
    swaps = swaps_of(log, fewest=options.fewest)
    write_pairs(options.out / "pairs.csv", log, swaps, scores)
    draw_pairs(options.out / "real-pages-pairs.svg", swaps, scores, models)
    results = played(instances, models, options.out / "results", options)
    draw_policies(options.out / "real-pages-policies.svg", results, options.title)
    return tables(ranks, found, results)


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    for field in fields(Asked)[2:]:
        parser.add_argument(f"--{field.name}", type=str if field.default is None else type(field.default))
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    options = Asked(**given)
    text = "\n\n".join(f"## {name}\n\n{table}" for name, table in measured(options).items())
    (options.out / "tables.md").write_text(f"# {options.title}\n\n{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
