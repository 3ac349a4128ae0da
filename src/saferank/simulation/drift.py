"""Worlds that change during a run: attractions that are replaced from given rounds on.

    drift = step(50_000, to="reversed")                    # from round 50,000 on the best item is the worst one
    drift = slow(20_000, 80_000, to="original")            # from round 20,000 to 80,000, in 100 small steps
    drift = arrivals(arrive={5: 10_000}, leave={0: 1000})  # item 5 attracts no visitor before round 10,000
    drift = step(30_000, to="reversed") + step(60_000, to="original")

A drift is made of parts, each of which changes the attractions that the parts before it leave. Only attraction changes:
items, original ranking and everything else of the click model stay. An item that is not there yet, or no longer, has
attraction 0: pages may show it, no visitor clicks on it, and every other item is better. So the compiled loop needs no
notion of absent items; it is called again with another world after each change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from saferank.verbs import Floats

Target = str | Sequence[float]
"""``original``, ``reversed``, or the attractions themselves."""

SMALL_STEPS = 100


class Part(Protocol):
    """One way in which attractions change."""

    def rounds(self, n_items: int, n_positions: int) -> list[int]:
        """The rounds from which on other attractions hold."""

    def at(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        """The attractions in round ``now``, given those without this part."""


class Change(NamedTuple):
    """Attractions, and the first round in which they hold."""

    first: int
    attraction: Floats


@dataclass(frozen=True)
class Drift:
    """A world that changes. ``str()`` of a drift from the command line gives its text."""

    parts: tuple[Part, ...]
    text: str = "drift"

    def __add__(self, other: "Drift") -> "Drift":
        """Both: the second one changes what the first one leaves."""
        return Drift(self.parts + other.parts, f"{self.text},{other.text}")

    def __str__(self) -> str:
        return self.text

    def changes(self, attraction: Floats, n_positions: int, rounds: int) -> list[Change]:
        """The attractions of all rounds up to ``rounds``, from round 1 on, ascending."""
        n_items = len(attraction)
        at = {1, *(first for part in self.parts for first in part.rounds(n_items, n_positions))}
        return [
            Change(first, self._in_round(first, attraction, n_positions)) for first in sorted(at) if first <= rounds
        ]

    def _in_round(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        for part in self.parts:
            attraction = part.at(now, attraction, n_positions)
        return np.ascontiguousarray(attraction, np.float64)


def target_of(to: Target, attraction: Floats) -> Floats:
    """The attractions that a drift leads to.

    >>> target_of("original", np.array([0.2, 0.5, 0.3])).tolist()
    [0.5, 0.3, 0.2]
    >>> target_of("reversed", np.array([0.2, 0.5, 0.3])).tolist()
    [0.5, 0.2, 0.3]
    """
    if isinstance(to, str):
        ascending = np.sort(attraction)
        if to == "original":
            return ascending[::-1]
        reverse = np.empty_like(attraction)
        reverse[np.argsort(attraction, kind="stable")] = ascending[::-1]
        return reverse
    if len(to) != len(attraction):
        raise ValueError(f"a drift to {len(to)} attractions cannot be played with {len(attraction)} items")
    return np.array(to, np.float64)


@dataclass(frozen=True)
class _Step:
    first: int
    to: Target

    def rounds(self, n_items: int, n_positions: int) -> list[int]:
        return [self.first]

    def at(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        return attraction if now < self.first else target_of(self.to, attraction)


@dataclass(frozen=True)
class _Slow:
    first: int
    last: int
    to: Target
    steps: int

    def rounds(self, n_items: int, n_positions: int) -> list[int]:
        span = self.last - self.first
        return [self.first + span * step // max(1, self.steps - 1) for step in range(self.steps)]

    def at(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        made = sum(first <= now for first in self.rounds(len(attraction), n_positions))
        share = made / self.steps
        return attraction * (1 - share) + target_of(self.to, attraction) * share


@dataclass(frozen=True)
class _Arrivals:
    arrive: Mapping[int, int] = field(default_factory=dict)
    leave: Mapping[int, int] = field(default_factory=dict)
    every: int | None = None  # unranked items arrive in candidate order, one after each such number of rounds

    def _arrives(self, n_items: int, n_positions: int) -> dict[int, int]:
        if self.every is None:
            return dict(self.arrive)
        return {item: 1 + (item - n_positions + 1) * self.every for item in range(n_positions, n_items)}

    def rounds(self, n_items: int, n_positions: int) -> list[int]:
        return [*self._arrives(n_items, n_positions).values(), *self.leave.values()]

    def at(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        absent = [item for item, first in self._arrives(len(attraction), n_positions).items() if now < first]
        gone = [item for item, first in self.leave.items() if now >= first]
        if max([*self.arrive, *self.leave], default=0) >= len(attraction):
            raise ValueError(f"items {[*self.arrive, *self.leave]} cannot come and go among {len(attraction)} items")
        present = attraction.copy()
        present[absent + gone] = 0.0
        return present


@dataclass(frozen=True)
class _Departures:
    every: int  # unranked items leave in candidate order, one after each such number of rounds

    def rounds(self, n_items: int, n_positions: int) -> list[int]:
        return [1 + number * self.every for number in range(1, n_items - n_positions + 1)]

    def at(self, now: int, attraction: Floats, n_positions: int) -> Floats:
        gone = sum(first <= now for first in self.rounds(len(attraction), n_positions))
        present = attraction.copy()
        present[n_positions : n_positions + gone] = 0.0
        return present


def _check_round(first: int) -> int:
    if first < 1:
        raise ValueError(f"a world changes in round {first}; rounds count from 1")
    return first


def _check_target(to: Target) -> Target:
    if isinstance(to, str) and to not in ("original", "reversed"):
        raise ValueError(f"unknown target {to!r} of a drift; known are original and reversed")
    if not isinstance(to, str) and not all(0 <= value <= 1 for value in to):
        raise ValueError(f"attractions lie between 0 and 1, not {to!r}")
    return to if isinstance(to, str) else tuple(to)


def step(first: int, to: Target) -> Drift:
    """From round ``first`` on other attractions hold.

    ``original``: the same attractions, but the original ranking is the optimal one. ``reversed``: the same attractions,
    the best item has the smallest one, and so on. Or the attractions, one per item.
    """
    return Drift((_Step(_check_round(first), _check_target(to)),), f"step:{first}:{to}")


def slow(first: int, last: int, to: Target, steps: int = SMALL_STEPS) -> Drift:
    """Between two rounds attractions move in equal small steps to others: those of ``step``."""
    if last < _check_round(first) or steps < 1:
        raise ValueError(f"a slow change from round {first} to {last} in {steps} steps is none")
    return Drift((_Slow(first, last, _check_target(to), steps),), f"slow:{first}:{last}:{to}")


def arrivals(arrive: Mapping[int, int] | None = None, leave: Mapping[int, int] | None = None) -> Drift:
    """Items by number, and the rounds from which on they are there, or no longer there."""
    come, go = dict(arrive or {}), dict(leave or {})
    if not come and not go:
        raise ValueError("arrivals without items")
    for first in (*come.values(), *go.values()):
        _check_round(first)
    return Drift((_Arrivals(come, go),), f"arrivals:{come}:{go}")


def arrivals_every(rounds: int) -> Drift:
    """Unranked items arrive in candidate order, one every ``rounds`` rounds; at first only the ranked are there."""
    return Drift((_Arrivals(every=_check_round(rounds)),), f"arrivals:{rounds}")


def departures_every(rounds: int) -> Drift:
    """Unranked items leave in candidate order, one every ``rounds`` rounds; in the end only the ranked are left."""
    return Drift((_Departures(_check_round(rounds)),), f"departures:{rounds}")


def parse_drift(text: str) -> Drift:
    """The drift that a text like ``step:50000:reversed`` describes; several with commas between are added.

    >>> str(parse_drift("slow:1000:2000:original,step:5000:reversed"))
    'slow:1000:2000:original,step:5000:reversed'
    """
    drifts = [_parse_part(part.strip()) for part in text.split(",")]
    total = drifts[0]
    for drift in drifts[1:]:
        total += drift
    return total


def _parse_part(text: str) -> Drift:
    kind, *rest = text.split(":")
    try:
        if kind == "step" and len(rest) == 2:
            return step(_round(rest[0]), rest[1])
        if kind == "slow" and len(rest) == 3:
            return slow(_round(rest[0]), _round(rest[1]), rest[2])
        if kind == "arrivals" and len(rest) == 1:
            return arrivals_every(_round(rest[0]))
        if kind == "departures" and len(rest) == 1:
            return departures_every(_round(rest[0]))
    except ValueError as problem:
        raise ValueError(f"{text!r}: {problem}") from None
    raise ValueError(
        f"{text!r} is no drift; expected step:ROUND:TO, slow:FIRST:LAST:TO, arrivals:EVERY or departures:EVERY, TO "
        "being original or reversed"
    )


def _round(text: str) -> int:
    """A number of rounds, also like 5e4."""
    value = float(text)
    if not value.is_integer():
        raise ValueError(f"{text} is no whole number of rounds")
    return int(value)
