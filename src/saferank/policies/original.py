"""OriginalRank: always shows the original ranking. Every other policy is measured against it.

regret(T) = T (r* - r(original))
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.issuing import shows_one_page
from saferank.randomness import Words
from saferank.verbs import Flags, Impression, Ints, Items, choose, learn


class Original(NamedTuple):
    """Hyper-parameters: the ranking."""

    ranking: Items


class OriginalState(NamedTuple):
    """It only counts."""

    round: Ints  # [1] pages issued
    learned: Ints  # [1] pages answered
    leader: Items


@implements(choose, Original)
def _choose(policy: Original, state: OriginalState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    impression.round[0] = state.round[0]
    impression.places[0] = len(state.leader)
    for place in range(len(state.leader)):
        impression.ranking[place] = state.leader[place]
        impression.start[place], impression.end[place] = place, place + 1


@implements(learn, Original)
def _learn(policy: Original, state: OriginalState, impression: Impression, clicks: Ints) -> None:
    state.learned[0] += 1


@implements(shows_one_page, Original)
def _shows_one_page(policy: Original) -> bool:
    return True


def _start(setup: Setup) -> tuple[Original, OriginalState]:
    ranking = np.arange(setup.n_positions, dtype=np.uint32)
    return Original(ranking), OriginalState(np.zeros(1, np.int64), np.zeros(1, np.int64), ranking.copy())


def _leader(state: Any) -> Ints:
    return state.leader.astype(np.int64)  # type: ignore[no-any-return]


def _regroup(policy: Original, state: OriginalState, present: Flags) -> OriginalState:
    return state._replace(leader=np.flatnonzero(present)[: len(state.leader)].astype(np.uint32))


def _outlook(policy: Original, state: OriginalState) -> Outlook:
    return Outlook("nothing is explored")


register(
    "original",
    Original,
    start=_start,
    leader=_leader,
    regroup=_regroup,
    outlook=_outlook,
    shown_as=Presentation(
        "OriginalRank",
        Look("#75757d", "#a3a3ad", (0, (1.2, 1.5)), "X"),
        PAPER,
        order=5,
        about="shows the original ranking and learns nothing",
    ),
)
