"""The six click models: probability of a click vector, expected clicks by enumeration, one simulated user.

A user who examines position k (from 0) leaves the rest of the clicks with the probability that ``examines(k)`` returns;
a user who has stopped clicks no more.
"""

from dataclasses import dataclass
from itertools import product
from typing import Protocol

from tests.reference.randomness import Xoshiro


class ClickModel(Protocol):
    def probability_of(self, shown: list[int], clicks: list[int]) -> float: ...

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]: ...


def expected_clicks(model: ClickModel, shown: list[int]) -> float:
    """The sum over all 2^K click vectors of their probability times their number of clicks."""
    total = 0.0
    for vector in product([0, 1], repeat=len(shown)):
        total += model.probability_of(shown, list(vector)) * sum(vector)
    return total


def _stopped(clicks: list[int], k: int) -> float:
    """The probability of the clicks from position k on, when the user stopped before k."""
    return 0.0 if any(clicks[k:]) else 1.0


@dataclass
class PBM:
    """Examination per position, clicks independent."""

    attraction: list[float]
    examination: list[float]

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        probability = 1.0
        for k, item in enumerate(shown):
            p = self.examination[k] * self.attraction[item]
            probability *= p if clicks[k] == 1 else 1 - p
        return probability

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for k, item in enumerate(shown):
            if rng.uniform() < self.examination[k] * self.attraction[item]:
                clicks[k] = 1
        return clicks


@dataclass
class CM:
    """Top to bottom, click the first attractive item, stop."""

    attraction: list[float]

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        def examines(k: int) -> float:
            if k == len(shown):
                return 1.0
            a = self.attraction[shown[k]]
            if clicks[k] == 1:
                return a * _stopped(clicks, k + 1)
            return (1 - a) * examines(k + 1)

        return examines(0)

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for k, item in enumerate(shown):
            if rng.uniform() < self.attraction[item] and 1 not in clicks:
                clicks[k] = 1
        return clicks


@dataclass
class DCM:
    """After a click at position k go on with continuation[k], else stop; without a click always go on."""

    attraction: list[float]
    continuation: list[float]

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        def examines(k: int) -> float:
            if k == len(shown):
                return 1.0
            a = self.attraction[shown[k]]
            if clicks[k] == 1:
                go_on = self.continuation[k]
                return a * (go_on * examines(k + 1) + (1 - go_on) * _stopped(clicks, k + 1))
            return (1 - a) * examines(k + 1)

        return examines(0)

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for k, item in enumerate(shown):
            if rng.uniform() < self.attraction[item]:
                clicks[k] = 1
                if not rng.uniform() < self.continuation[k]:
                    return clicks
        return clicks


@dataclass
class DBN:
    """A clicked item satisfies with satisfaction[item] and the user stops; otherwise goes on with continuation."""

    attraction: list[float]
    satisfaction: list[float]
    continuation: float

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        def examines(k: int) -> float:
            if k == len(shown):
                return 1.0
            a = self.attraction[shown[k]]
            stopped = _stopped(clicks, k + 1)
            unsatisfied = self.continuation * examines(k + 1) + (1 - self.continuation) * stopped
            if clicks[k] == 1:
                satisfied = self.satisfaction[shown[k]]
                return a * (satisfied * stopped + (1 - satisfied) * unsatisfied)
            return (1 - a) * unsatisfied

        return examines(0)

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for k, item in enumerate(shown):
            if rng.uniform() < self.attraction[item]:
                clicks[k] = 1
                if rng.uniform() < self.satisfaction[item]:
                    return clicks
            if not rng.uniform() < self.continuation:
                return clicks
        return clicks


@dataclass
class UBM:
    """Examination at position r depends on r and on the position of the last click above (none is column 0)."""

    attraction: list[float]
    examination: list[list[float]]

    def click_probability(self, shown: list[int], clicks: list[int], r: int) -> float:
        """The probability of a click at r (from 0), given the clicks above."""
        last = 0
        for k in range(r):
            if clicks[k] == 1:
                last = k + 1
        return self.examination[r][last] * self.attraction[shown[r]]

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        probability = 1.0
        for r in range(len(shown)):
            p = self.click_probability(shown, clicks, r)
            probability *= p if clicks[r] == 1 else 1 - p
        return probability

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for r in range(len(shown)):
            if rng.uniform() < self.click_probability(shown, clicks, r):
                clicks[r] = 1
        return clicks


@dataclass
class CCM:
    """Without a click go on with continuation_no_click; after a click the item was relevant with the probability of its
    attraction: go on with continuation_click_relevant if so, else with continuation_click_nonrelevant.
    """

    attraction: list[float]
    continuation_no_click: float
    continuation_click_nonrelevant: float
    continuation_click_relevant: float

    def probability_of(self, shown: list[int], clicks: list[int]) -> float:
        def then(go_on: float, k: int) -> float:
            return go_on * examines(k + 1) + (1 - go_on) * _stopped(clicks, k + 1)

        def examines(k: int) -> float:
            if k == len(shown):
                return 1.0
            a = self.attraction[shown[k]]
            if clicks[k] == 1:
                relevant = a * then(self.continuation_click_relevant, k)
                nonrelevant = (1 - a) * then(self.continuation_click_nonrelevant, k)
                return a * (relevant + nonrelevant)
            return (1 - a) * then(self.continuation_no_click, k)

        return examines(0)

    def simulate(self, shown: list[int], rng: Xoshiro) -> list[int]:
        clicks = [0] * len(shown)
        for k, item in enumerate(shown):
            if rng.uniform() < self.attraction[item]:
                clicks[k] = 1
                relevant = rng.uniform() < self.attraction[item]
                go_on = self.continuation_click_relevant if relevant else self.continuation_click_nonrelevant
            else:
                go_on = self.continuation_no_click
            if not rng.uniform() < go_on:
                return clicks
        return clicks
