"""Feedback that comes late or not at all, a screen that is not as the policy believes, and other rewards.

    feedback = LateFeedback(delay=10)                      # clicks are learnt after ten more pages have been shown
    feedback = LateFeedback(delay="geometric:10")          # ten more pages on average, each page on its own
    feedback = LateFeedback(lost_pages=0.1)                # of every tenth page nothing is ever heard
    feedback = LateFeedback(lost_clicks=0.1)               # every tenth click is lost, the rest of its page arrives

A policy gets such a page like the live learner does: frozen when it was issued, learnt when its clicks arrive.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saferank.errors import ArgumentError, whole_number
from saferank.simulation.rewards import Reward
from saferank.verbs import Floats, Ints

LONGEST_DELAY = 10**5
_CUT = 20
"""Multiple of its mean plus one at which a geometric delay is cut: beyond is less than 3e-9 of the pages."""


@dataclass(frozen=True)
class LateFeedback:
    """When clicks arrive, and which never do. The defaults are those of a world in which all arrive at once.

    A delay that is given as text, as on the command line, and means a number is that number: "0" is no delay.
    """

    delay: int | str = 0  # pages shown in between: a number, or geometric:MEAN
    lost_pages: float = 0.0  # probability that all feedback of a page is lost
    lost_clicks: float = 0.0  # probability that a click is lost, each on its own

    def __post_init__(self) -> None:
        if str(self.delay).partition(":")[0] != "geometric":
            object.__setattr__(self, "delay", _whole_pages(self.delay))
        self.delays()
        for name in ("lost_pages", "lost_clicks"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ArgumentError("world", f"{name}: found {value}, expected a probability from 0 to 1")

    def delays(self) -> Floats:
        """The probabilities of a delay of at most 0, 1, 2, ... pages, up to 1."""
        if isinstance(self.delay, int):
            return np.array([0.0] * self.delay + [1.0])
        return _geometric(self.delay.partition(":")[2])

    def __str__(self) -> str:
        named = (("delay", self.delay), ("lost-pages", self.lost_pages), ("lost-clicks", self.lost_clicks))
        return ",".join(f"{name}:{value}" for name, value in named if value)


def _whole_pages(delay: int | str) -> int:
    try:
        return whole_number(float(delay), "delay", at_least=0, at_most=LONGEST_DELAY)
    except (TypeError, ValueError) as problem:
        expected = f"expected a whole number of pages up to {LONGEST_DELAY} or geometric:MEAN"
        raise ArgumentError("world", f"delay: found {delay!r}, {expected}") from problem


def _geometric(text: str) -> Floats:
    try:
        mean = float(text)
    except ValueError:
        mean = -1.0
    if not 0 < mean <= LONGEST_DELAY / (2 * _CUT):
        reason = f"delay: found geometric:{text}, expected a mean above 0 and at most {LONGEST_DELAY // (2 * _CUT)}"
        raise ArgumentError("world", reason)
    stays = mean / (1.0 + mean)
    most = math.ceil(_CUT * (mean + 1.0))
    return np.array([1.0 - stays ** (pages + 1) for pages in range(most)] + [1.0])


def layout_of(places: tuple[int, ...] | None, n_positions: int) -> Ints:
    """By place of the screen: the position of the policy, from 0, whose item stands there."""
    if places is None:
        return np.arange(n_positions)
    if sorted(places) != list(range(1, n_positions + 1)):
        given = ",".join(map(str, places))
        raise ArgumentError("world", f"layout: found {given}, expected each of the positions 1 to {n_positions} once")
    return np.array(places, np.int64) - 1


class FeedbackTerms(NamedTuple):
    """What is agreed between users and policy, for the compiled loop."""

    delays: Floats  # see ``LateFeedback.delays``
    lost_pages: float
    lost_clicks: float
    layout: Ints  # see ``layout_of``
    reward: Reward


def terms_of(feedback: LateFeedback | None, layout: Ints, reward: Reward) -> FeedbackTerms:
    """The terms of these options."""
    known = LateFeedback() if feedback is None else feedback
    return FeedbackTerms(known.delays(), float(known.lost_pages), float(known.lost_clicks), layout, reward)
