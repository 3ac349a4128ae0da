"""The users of a forecast: the click model that foresees held-out pages best, and its refits to drawn logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saferank.errors import ArgumentError
from saferank.fitting import ESTIMATORS, estimator
from saferank.fitting.bootstrap import replicates as drawn_models
from saferank.fitting.evaluation import Evaluation, evaluate_model
from saferank.fitting.export import instances_of
from saferank.fitting.fit import estimate, read_pages
from saferank.instances import Instance
from saferank.logs import ClickLog, split
from saferank.progress import Reporter

HELD_OUT = 0.25


@dataclass(frozen=True, eq=False)
class Worlds:
    """Instances of the same queries: as fitted to the log, and as fitted to logs drawn from it."""

    model: str
    fitted: list[Instance]
    drawn: list[list[Instance]]
    lengths: dict[str, int]  # by query: how many items production's ranking has
    evaluations: dict[str, Evaluation]  # on held-out pages; empty when the model was given


def usable_pages(
    path: Path, form: str, queries: int, page_length: int | None, max_bad: float, shown: Reporter
) -> ClickLog:
    """The pages of a log's most frequent queries; an ``ArgumentError`` when nothing can be learnt from them."""
    log = read_pages(path, form, queries, max_bad, shown, page_length)
    if not log.pages.clicks.any():
        raise ArgumentError("log", f"{path}: no page of its most frequent queries has a click; nothing can be forecast")
    if not any(ranking is not None and len(ranking) > 1 for ranking in log.rankings):
        raise ArgumentError("log", f"{path}: no query has a page of two items or more; there is nothing to rank")
    return log


def worlds_of(
    log: ClickLog, model: str | None, items: int | None, iterations: int, replicates: int, seed: int, shown: Reporter
) -> Worlds:
    """Fit, choose the model unless it is given, and fit again to ``replicates`` drawn logs."""
    evaluations = {} if model is not None else _evaluations(tuple(ESTIMATORS), log, iterations, seed, shown)
    name = model or max(evaluations, key=lambda each: evaluations[each].log_likelihood)
    fitted = _rankable(log, name, estimate(name, log, iterations, shown).model, items)
    with shown.status(f"estimating {name} from {replicates} drawn logs"):
        models = drawn_models(estimator(name), log, iterations, replicates, seed)
        drawn = [_rankable(log, name, model, items) for model in models]
    lengths = {log.queries[n]: len(ranking) for n, ranking in enumerate(log.rankings) if ranking is not None}
    return Worlds(name, fitted, drawn, lengths, evaluations)


def _rankable(log: ClickLog, name: str, model: Any, items: int | None) -> list[Instance]:
    """The instances that have something to rank."""
    return [instance for instance in instances_of(log, {name: model}, items) if len(instance.items) > 1]


def _evaluations(
    names: Sequence[str], log: ClickLog, iterations: int, seed: int, shown: Reporter
) -> dict[str, Evaluation]:
    seen, unseen = split(log, HELD_OUT, seed)
    if not len(seen.pages.weight) or not len(unseen.pages.weight) or not np.any(seen.pages.clicks):
        raise ArgumentError("model", "the log is too small to hold pages out; name a click model, for example pbm")
    return {name: evaluate_model(estimate(name, seen, iterations, shown).model, unseen.pages) for name in names}
