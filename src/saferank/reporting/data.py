"""What was run and on which data, as a reader must know it: rows for tables, from the provenance of results."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from polars import Series

from saferank.reporting.frames import ends_of
from saferank.reporting.looks import model_name, policy_name, shortened
from saferank.reporting.numbers import counted, plainly
from saferank.reporting.reading import Run
from saferank.table import TextTable

_DIGITS = 12
"""Of a SHA-256, enough to tell files apart."""
EMBEDDED = "embedded"


@dataclass(frozen=True)
class Data:
    """The data of a run."""

    name: str
    """What comes after "on" in a sentence."""
    detail: str
    """One or two sentences that say where the data come from."""


def data_of(run: Run) -> Data:
    """The log or the instances that the provenance names.

    >>> from pathlib import Path
    >>> from saferank.reporting.frames import means_of
    >>> source = {"instances": {"name": "mine.json", "sha256": "0123456789abcdef"}}
    >>> data_of(Run(Path("results.json"), means_of([]), source)).name
    'the instances of mine.json (SHA-256 0123456789ab…)'
    """
    log, instances = run.reproduction.get("log"), run.provenance.get("instances")
    if isinstance(log, Mapping):
        return _synthetic_log(log) if log.get("synthetic") is True else _log(log)
    if isinstance(log, str):
        return _log({"name": log})
    if isinstance(instances, Mapping):
        return _instances(instances)
    return Data(
        "data that the results do not name",
        "The results do not say which log or which instances were played. Nothing here is about the paper's own data.",
    )


def _synthetic_log(log: Mapping[str, Any]) -> Data:
    size = _size(log)
    return Data(
        "a synthetic log with planted users",
        f"saferank wrote the log itself{size}. Its users are planted: each follows a click model that we chose, and "
        "the paper's two special queries are planted among the others. The log that the paper used is not part of this "
        "run; a verdict here is about the algorithms, not about the paper's numbers.",
    )


def _log(log: Mapping[str, Any]) -> Data:
    name = shortened(str(log.get("name", "without a name")), 60)
    form = f", format {log['format']}" if isinstance(log.get("format"), str) else ""
    return Data(
        f"the log {name}{_digest(log.get('sha256'))}",
        f"The click models were estimated from the log {name}{form}{_size(log)}. Users are simulated with them.",
    )


def _instances(facts: Mapping[str, Any]) -> Data:
    name = facts.get("name")
    number = facts.get("played")
    played = f" Played: {counted(number, 'instance')}." if isinstance(number, int) else ""
    if name == EMBEDDED:
        return Data(
            "the embedded instances, which are synthetic",
            f"The instances come with saferank and are made from a seed, in the shape of web search.{played}",
        )
    if not isinstance(name, str):
        digest = _digest(facts.get("played_sha256"))
        return Data(f"instances that were given as objects{digest}", f"They were made in Python.{played}")
    return Data(
        f"the instances of {shortened(name, 60)}{_digest(facts.get('sha256'))}",
        f"The click models are those of the file; whether they were measured or made up, its author knows.{played}",
    )


def _digest(sha256: object) -> str:
    return f" (SHA-256 {sha256[:_DIGITS]}…)" if isinstance(sha256, str) and sha256 else ""


def _size(log: Mapping[str, Any]) -> str:
    pages, queries = log.get("pages"), log.get("queries")
    known = isinstance(pages, int) and isinstance(queries, int)
    return f": {counted(pages, 'page')} of {counted(queries, 'query', 'queries')}" if known else ""  # type: ignore[arg-type]


@dataclass(frozen=True)
class ModelFit:
    """How well a click model fits the log, on pages that it was not fitted to."""

    model: str
    held_out: int
    perplexity: float | None  # None: infinite, for what happened was held for impossible
    impossible: float  # share of pages
    attraction_error: float  # median standard error of the items that are played

    @property
    def cells(self) -> tuple[str, str, str]:
        """Perplexity, impossible pages and parameter error as text."""
        perplexity = "∞" if self.perplexity is None else f"{self.perplexity:.3f}"
        return perplexity, f"{100 * self.impossible:.1f} %", f"± {self.attraction_error:.2g}"

    @property
    def weakness(self) -> str | None:
        """What weakens claims under this model; None where it foresaw what happened."""
        if self.impossible < _HARDLY_ANY:
            return None
        return f"{model_name(self.model)} holds {100 * self.impossible:.0f} % of the held-out pages for impossible"


_HARDLY_ANY = 0.005


def fits_of(run: Run) -> dict[str, ModelFit]:
    """By click model, from the provenance of a reproduction; empty for results that do not say."""
    facts = run.reproduction.get("fit")
    if not isinstance(facts, Mapping):
        return {}
    return {model: ModelFit(model, **each) for model, each in facts.items() if isinstance(each, Mapping)}


def fits_table(fits: Mapping[str, ModelFit]) -> TextTable | None:
    """How the click models fit; None for results that do not say."""
    if not fits:
        return None
    caption = (
        f"How the click models fit the log, on {next(iter(fits.values())).held_out:,} held-out pages. Perplexity is 1 "
        "if every click is foreseen and 2 for a fair coin; impossible pages have probability 0 under the model; the "
        "last column is the median standard error of the attractions that are played."
    )
    columns = ["click model", "perplexity", "impossible pages", "attraction"]
    rows = [[model_name(model), *fit.cells] for model, fit in fits.items()]
    return TextTable("How the click models fit", columns, rows, caption)


_FIRST = (
    "command", "version", "seed", "seconds", "profile", "log", "queries", "rule", "rounds", "positions", "models",
    "peak_memory_mb",
)  # fmt: skip
_TITLES = {
    "version": "saferank", "rule": "decision rule", "models": "click models", "peak_memory_mb": "peak memory, MB",
}  # fmt: skip
_ELSEWHERE = (
    "fit", "machine", "asked", "source", "reproduction", "special", "sensitivity", "study", "study_sets",
    "seconds_by_policy",
)  # fmt: skip
"""What comes first in the list of facts, the names of some, and what has a place of its own on the page."""


def what_was_run(run: Run) -> list[tuple[str, str]]:
    """Names and values, the known ones first, then everything else that the provenance holds."""
    machine = run.provenance.get("machine")
    facts: dict[str, Any] = {**run.provenance, **run.reproduction}
    facts["repetitions"] = _spread(run.means["repetitions"])
    facts.setdefault("rounds", _spread(ends_of(run.means)["round"]))
    facts.setdefault("positions", _spread(run.means["positions"]))
    facts["items"] = _spread(run.means["items"])
    order = [*(key for key in _FIRST if key in facts), *(key for key in facts if key not in _FIRST)]
    rows = [(_TITLES.get(key, key), in_words(facts[key])) for key in order if key not in _ELSEWHERE]
    return rows + ([(str(name), in_words(value)) for name, value in machine.items()] if _is_object(machine) else [])


def seconds_table(run: Run) -> TextTable | None:
    """Seconds and share of every algorithm, the slowest first; None when it was not measured."""
    measured = run.reproduction.get("seconds_by_policy")
    known = measured.items() if _is_object(measured) else ()
    seconds = {policy: float(value) for policy, value in known if isinstance(value, int | float)}
    total = sum(seconds.values())
    if not total:
        return None
    slowest_first = sorted(seconds.items(), key=lambda pair: -pair[1])
    rows = [[policy_name(name), f"{value:,.1f}", f"{value / total:.0%}"] for name, value in slowest_first]
    return TextTable("Seconds by algorithm", ["algorithm", "seconds", "share"], rows)


def in_words(value: object) -> str:
    """A value of a JSON file for people.

    >>> in_words(100000), in_words(["pbm", "cm"]), in_words(None), in_words({"a": 1})
    ('100,000', 'pbm, cm', 'unknown', 'a: 1')
    """
    if value is None:
        return "unknown"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return plainly(value)
    if isinstance(value, list | tuple):
        return ", ".join(in_words(part) for part in value)
    if _is_object(value):
        return ", ".join(f"{name}: {in_words(part)}" for name, part in value.items())
    return str(value)


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _spread(numbers: Series) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
