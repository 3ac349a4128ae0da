"""A world that is not the paper's, as one argument.

    world={"delay": 10, "lost_pages": 0.1}           # from Python
    --world delay=10 --world lost-pages=0.1          # on the command line

Values are those of Python or their texts. docs/researchers/worlds.md says what the parts mean.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from saferank.errors import ArgumentError, did_you_mean
from saferank.simulation.drift import parse_drift
from saferank.simulation.feedback import LateFeedback

World = Mapping[str, Any] | Sequence[str] | str | None


def _numbers(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        parts = value.split(",") if isinstance(value, str) else value
        try:
            return tuple(kind(part) for part in parts)
        except (TypeError, ValueError) as problem:
            raise ValueError(f"found {value!r}, expected numbers") from problem

    return read


_READ: dict[str, Callable[[Any], Any]] = {
    "drift": lambda value: parse_drift(value) if isinstance(value, str) else value,
    "delay": lambda value: value,
    "lost_pages": lambda value: _numbers(float)([value])[0],
    "lost_clicks": lambda value: _numbers(float)([value])[0],
    "layout": _numbers(int),
    "examination": _numbers(float),
    "reward": str,
}
PARTS = tuple(_READ)


def world_of(world: World) -> dict[str, Any]:
    """The fields of a ``Plan`` that make this world; an ``ArgumentError`` about ``world`` for what makes none.

    >>> made = world_of(["lost-pages=0.1", "layout=2,1"])
    >>> str(made["feedback"]), made["layout"]
    ('lost-pages:0.1', (2, 1))
    """
    found = {}
    for name, value in _parts(world).items():
        try:
            found[name] = _READ[name](value)
        except ValueError as problem:
            raise ArgumentError("world", f"{name}: {problem}") from problem
    late = {name: found.pop(name) for name in ("delay", "lost_pages", "lost_clicks") if name in found}
    feedback = LateFeedback(**late)
    return {**found, "feedback": feedback if str(feedback) else None}


def _parts(world: World) -> dict[str, Any]:
    if isinstance(world, Mapping):
        pairs = list(world.items())
    else:
        pairs = [_pair(text) for text in ([world] if isinstance(world, str) else world or ())]
    found: dict[str, Any] = {}
    for name, value in pairs:
        part = str(name).replace("-", "_")
        if part not in PARTS:
            known = f"known ones: {', '.join(PARTS)}{did_you_mean(part, PARTS)}"
            raise ArgumentError("world", f"unknown part {name!r}; {known}")
        if part in found:
            raise ArgumentError("world", f"{name} is there twice; keep one")
        if value is not None:  # the paper's
            found[part] = value
    return found


def _pair(text: Any) -> tuple[str, str]:
    name, equals, value = str(text).partition("=")
    if not equals:
        raise ArgumentError("world", f"found {text!r}, expected NAME=VALUE, for example delay=10 or reward=dcg")
    return name, value
