"""One combination out of the results of a sweep: a rule, a number of positions, a lifetime of certificates.

Results of different combinations must not be averaged or compared as if they were one, so a report is about one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saferank.errors import ArgumentError
from saferank.simulation.results import Result
from saferank.statistics.decision import decision_rule

NONE = "none"
"""How a reader names the results whose certificates never end."""
_PARTS = ("rule", "positions", "lifetime")


@dataclass(frozen=True)
class Selection:
    """What was chosen; None: nothing, which is enough where the results do not differ in it."""

    rule: str | None = None
    positions: int | None = None
    lifetime: int | str | None = None

    def of(self, results: Sequence[Result]) -> list[Result]:
        """The results of one combination; an ``ArgumentError`` when it is not there or when several are left.

        A policy that takes no rule, or has no certificates, was played once for all of them; it is always kept.
        """
        kept = list(results)
        for name in _PARTS:
            if getattr(self, name) is not None:
                kept = _chosen(kept, name, getattr(self, name))
        swept = {name: values for name in _PARTS if (values := _swept_values(kept, name))}
        if swept:
            over = " and ".join(f"{name} ({', '.join(map(_text, values))})" for name, values in swept.items())
            reason = f"the results are a sweep over {over}; a report is about one combination, so choose one of each"
            raise ArgumentError(next(iter(swept)), reason)
        return kept


ALL_ALIKE = Selection()
"""Nothing is chosen: the results are not of a sweep."""


def _chosen(results: Sequence[Result], name: str, wanted: Any) -> list[Result]:
    there = list(dict.fromkeys(getattr(result, name) for result in results))
    same = [value for value in there if _is_same(value, wanted, results[0].rounds[-1])]
    if not same:
        known = ", ".join(_text(value) for value in there if value is not None or name == "lifetime")
        raise ArgumentError(name, f"no results with {name} {_text(wanted)}; there are {known}")
    values = _values_by_policy(results, name)
    return [
        result
        for result in results
        if getattr(result, name) in same or (name != "positions" and len(values[result.policy]) == 1)
    ]


def _swept_values(results: Sequence[Result], name: str) -> list[Any]:
    """The values with which policies were played, of those policies that were played with several."""
    values = _values_by_policy(results, name)
    return list({value: None for of_policy in values.values() if len(of_policy) > 1 for value in of_policy})


def _values_by_policy(results: Sequence[Result], name: str) -> dict[str, dict[Any, None]]:
    values: dict[str, dict[Any, None]] = {}
    for result in results:
        values.setdefault(result.policy, {})[getattr(result, name)] = None
    return values


def _is_same(value: Any, wanted: Any, rounds: int) -> bool:
    """Equal as texts, or the same rule: paper:1e-5 is paper:0.00001."""
    if _text(value) == _text(wanted):
        return True
    try:
        one, other = decision_rule(value, rounds), decision_rule(wanted, rounds)
    except ValueError:  # not rules
        return False
    return (one.kind, one.level) == (other.kind, other.level)


def _text(value: object) -> str:
    return NONE if value is None else str(value)
