"""The log of a reproduction and the click models of its most frequent queries.

Where no log is given, one is made with planted users, the paper's two special queries among them.

The embedded queries are planted with PBM users, two of them changed so that estimation does not lose what makes them
special. ``optimal-original``: each item is clearly better than the next one; a cascade model, which takes a lower
position for a lower attraction, finds that even more so. ``worst-original`` would not be so bad in the eyes of such a
model: its items are planted with what a cascade model has to find, divided by the examination of their positions.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from saferank.click_models import PBM
from saferank.errors import ArgumentError, writing
from saferank.fitting import Fitted, estimator
from saferank.fitting.bootstrap import standard_errors
from saferank.fitting.export import instances_of
from saferank.fitting.fit import estimate, evaluated, read_pages
from saferank.instances import Instance
from saferank.instances.embedded import OPTIMAL, WORST, embedded_instances
from saferank.logs import ClickLog, LogSummary, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.progress import SESSIONS, Reporter
from saferank.reproduction.protocol import Protocol
from saferank.verbs import Floats

LOG_NAME = "log.gz"
LOG_FORMAT = "yandex-personalized"
_BEST, _STEP = 0.42, 0.85


def planted_queries(queries: int) -> list[Instance]:
    """The users of the log, most frequent query first."""
    return [_clearly_special(instance) for instance in planted_instances(queries, "pbm")]


def _clearly_special(instance: Instance) -> Instance:
    change = {OPTIMAL: _optimal, WORST: _worst}.get(instance.id)
    if change is None:
        return instance
    return replace(instance, model=instance.model._replace(attraction=np.round(change(instance.model), 4)))


def _optimal(model: PBM) -> Floats:
    return _BEST * _STEP ** np.arange(len(model.attraction), dtype=float)


def _worst(model: PBM) -> Floats:
    (cascade,) = (found for found in embedded_instances(2, models=("cm",)) if found.id == WORST)
    return np.asarray(cascade.model.attraction / model.examination)


def write_planted_log(
    folder: Path, queries: int, sessions: int, seed: int, progress: Callable[[int], object]
) -> tuple[Path, list[Instance]]:
    """Write the log into ``folder``; returns its path and the users as the log names them."""
    path = folder / LOG_NAME
    return path, write_synthetic_log(path, planted_queries(queries), sessions, seed, progress)


def fitted_instances(protocol: Protocol, out: Path, shown: Reporter) -> tuple[list[Instance], str, dict[str, Any]]:
    """The instances of the log's most frequent queries, a line about them, and what was in the log."""
    path = _planted(protocol, out, shown) if protocol.log is None else protocol.log
    form, length = protocol.format or LOG_FORMAT, protocol.page_length
    log = read_pages(path, form, protocol.sizes.queries, protocol.max_bad, shown, length)
    fits = {name: estimate(name, log, protocol.iterations, shown) for name in protocol.models}
    models = {name: fitted.model for name, fitted in fits.items()}
    pages = {query: len(ranking or ()) for query, ranking in zip(log.queries, log.rankings, strict=True)}
    made = instances_of(log, models, protocol.items)
    cut = [each for each in made if len(each.items) == protocol.items and pages[each.id] >= protocol.positions]
    found, wanted = len(cut) // len(models), protocol.sizes.queries
    have = f"{found} queries have {protocol.items} items and {_a_page(protocol)}"
    if not cut:
        raise ArgumentError("items", f"{path}: {have}; choose fewer items or positions, or another page_length")
    if found < wanted:
        shown.note(f"{path}: {have}, not {wanted}; all of them are taken")
    about = f"estimated by saferank reproduce from {path.name}, {protocol.iterations} iterations"
    facts = log_facts(log.summary, path.name, synthetic=protocol.log is None)
    return cut, about, {**facts, "fit": _quality(log, fits, protocol, {each.id for each in cut}, shown)}


HELD_OUT = 0.25
REPLICATES = 10


def _quality(
    log: ClickLog, fits: Mapping[str, Fitted], protocol: Protocol, played: set[str], shown: Reporter
) -> dict[str, Any]:
    """By click model how well it foresees pages that it was not fitted to, and how sure its attractions are.

    What it holds for impossible has an infinite perplexity, which is None here.
    """
    evaluations, held_out = evaluated(tuple(fits), log, HELD_OUT, protocol.iterations, protocol.seed, shown)
    found: dict[str, Any] = {}
    for name, evaluation in evaluations.items():
        errors = standard_errors(estimator(name), log, fits[name], protocol.iterations, REPLICATES, protocol.seed)
        own = [each.model.attraction for each in instances_of(log, {name: errors}, protocol.items) if each.id in played]
        found[name] = {
            "held_out": held_out,
            "perplexity": evaluation.perplexity if math.isfinite(evaluation.perplexity) else None,
            "impossible": evaluation.impossible,
            "attraction_error": float(np.median(np.concatenate(own))),
        }
    return found


def _a_page(protocol: Protocol) -> str:
    if protocol.page_length is None:
        return f"a page of at least {protocol.positions}"
    return f"a page of {protocol.page_length}"


def _planted(protocol: Protocol, out: Path, shown: Reporter) -> Path:
    sizes = protocol.sizes
    with writing(out), shown.meter(sizes.sessions, SESSIONS) as meter:
        return write_planted_log(out, sizes.queries, sizes.sessions, protocol.seed, meter)[0]


def log_facts(summary: LogSummary, name: str, synthetic: bool) -> dict[str, Any]:
    """A log by name, and what was in it."""
    return {
        "name": name,
        "format": summary.format,
        "synthetic": synthetic,
        "sessions": summary.sessions,
        "pages": summary.pages,
        "queries": summary.queries,
        "clicks": summary.clicks,
        "pages_without_click": summary.pages_without_click,
        "bad_lines": summary.bad,
    }
