"""What was run, as rows for a table: whatever the provenance says, in words."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from saferank.reporting.looks import policy_name
from saferank.reporting.numbers import plainly
from saferank.reporting.reading import Run

_TITLES = {
    "command": "command",
    "version": "saferank",
    "seed": "seed",
    "seconds": "seconds",
    "profile": "profile",
    "log": "log",
    "queries": "queries",
    "rule": "decision rule",
    "rounds": "rounds",
    "positions": "positions",
    "models": "click models",
    "peak_memory_mb": "peak memory, MB",
}
_ELSEWHERE = {
    "machine",
    "asked",
    "source",
    "reproduction",
    "special",
    "sensitivity",
    "study",
    "study_sets",
    "seconds_by_policy",
}


def what_was_run(run: Run) -> list[tuple[str, str]]:
    """Names and values, the known ones first, then everything else that the provenance holds."""
    machine = run.provenance.get("machine")
    facts: dict[str, Any] = {**run.provenance, **run.reproduction}
    facts["repetitions"] = _spread([result.repetitions for result in run.results])
    facts.setdefault("rounds", _spread([result.rounds[-1] for result in run.results]))
    facts.setdefault("positions", _spread([result.positions for result in run.results]))
    facts["items"] = _spread([result.items for result in run.results])
    order = [*(key for key in _TITLES if key in facts), *(key for key in facts if key not in _TITLES)]
    rows = [(_TITLES.get(key, key), in_words(facts[key])) for key in order if key not in _ELSEWHERE]
    return rows + ([(str(name), in_words(value)) for name, value in machine.items()] if _is_object(machine) else [])


def seconds_by_policy(run: Run) -> list[tuple[str, str, str]]:
    """Name, seconds and share of every algorithm, the slowest first; empty when it was not measured."""
    measured = run.reproduction.get("seconds_by_policy")
    if not _is_object(measured):
        return []
    seconds = {policy: float(value) for policy, value in measured.items() if isinstance(value, int | float)}
    total = sum(seconds.values())
    slowest_first = sorted(seconds.items(), key=lambda pair: -pair[1])
    return [(policy_name(name), f"{value:,.1f}", f"{value / total:.0%}") for name, value in slowest_first if total]


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


def _spread(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
