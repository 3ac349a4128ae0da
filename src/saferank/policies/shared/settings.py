"""Hyper-parameters in the name of a policy: ``bubble-rank:hidden_duels=false`` is BubbleRank with that value.

What can be set are the fields of the policy's NamedTuple that are a bool, an int or a float. The values replace those
that the policy starts with; its coins stay the same, so two values are compared on the same users and coins.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

Value = bool | int | float


def settable(policy: type) -> dict[str, type]:
    """The fields that can be set, with their types.

    >>> from saferank.policies.bubble_rank import BubbleRank
    >>> settable(BubbleRank)
    {'all_candidates': <class 'bool'>, 'hidden_duels': <class 'bool'>}
    """
    return {name: kind for name, kind in get_type_hints(policy).items() if kind in (bool, int, float)}


def parse_settings(name: str, policy: type, texts: list[str]) -> dict[str, Value]:
    """The values of texts like ``hidden_duels=false``; a ValueError names what the policy ``name`` can be given."""
    values: dict[str, Value] = {}
    for text in texts:
        field, _, value = text.partition("=")
        kinds = settable(policy)
        if field not in kinds:
            known = f"it has {', '.join(kinds)}" if kinds else "it has none that can be set"
            raise ValueError(f"{name} has no hyper-parameter {field!r}; {known}")
        if field in values:
            raise ValueError(f"{name}: {field} is there twice; keep one")
        values[field] = _parsed(f"{name}: {field}", kinds[field], value)
    return values


def _parsed(what: str, kind: type, text: str) -> Value:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{what} is {text!r}, expected true or false")
        return text.lower() == "true"
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ValueError(f"{what} is {text!r}, expected {expected}") from None


def in_name(values: Mapping[str, Value]) -> str:
    """The values as they stand in a name.

    >>> in_name({"hidden_duels": False, "level": 0.5})
    'hidden_duels=false:level=0.5'
    """
    return ":".join(f"{field}={str(value).lower()}" for field, value in values.items())


def starting_with(start: Callable[..., tuple[Any, Any]], values: Mapping[str, Value]) -> Callable[..., tuple[Any, Any]]:
    """``start`` with these values in place of its own."""
    return functools.update_wrapper(functools.partial(_start_with, start, dict(values)), start)


def _start_with(start: Callable[..., tuple[Any, Any]], values: dict[str, Value], setup: Any) -> tuple[Any, Any]:
    policy, evidence = start(setup)
    return policy._replace(**values), evidence
