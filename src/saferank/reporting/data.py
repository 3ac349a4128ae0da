"""What the data of a run are, as a reader must know it: made up or measured, by which name and digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saferank.reporting.looks import shortened
from saferank.reporting.numbers import counted
from saferank.reporting.reading import Run

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
    >>> data_of(Run(Path("results.json"), [], {"instances": {"name": "mine.json", "sha256": "0123456789abcdef"}})).name
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
