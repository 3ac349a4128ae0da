"""OriginalRank: always shows the original ranking. Every other policy is measured against it.

regret(T) = T (r* - r(original))
"""

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PAPER, Look, Outlook, Presentation, Setup, register
from saferank.randomness import Words
from saferank.verbs import Call, Impression, Ints, Items, choose, learn, shows_one_page


class Original(NamedTuple):
    """Hyper-parameters: the ranking."""

    ranking: Items


class OriginalEvidence(NamedTuple):
    """It only counts."""

    learned: Ints  # [1] pages answered


@implements(choose, Original)
def _choose(policy: Original, evidence: OriginalEvidence, plan: Call, rng: Words, impression: Impression) -> None:
    impression.places[0] = len(plan.base)
    for place in range(len(plan.base)):
        impression.ranking[place] = plan.base[place]
        impression.start[place], impression.end[place] = place, place + 1


@implements(learn, Original)
def _learn(policy: Original, evidence: OriginalEvidence, impression: Impression, clicks: Ints) -> None:
    evidence.learned[0] += 1


@implements(shows_one_page, Original)
def _shows_one_page(policy: Original) -> bool:
    return True


def _start(setup: Setup) -> tuple[Original, OriginalEvidence]:
    return Original(np.arange(setup.n_positions, dtype=np.uint32)), OriginalEvidence(np.zeros(1, np.int64))


def _leader(evidence: OriginalEvidence, plan: Call) -> Ints:
    return plan.base.astype(np.int64)


def _outlook(policy: Original, evidence: OriginalEvidence, plan: Call, issued: int) -> Outlook:
    return Outlook("nothing is explored")


register(
    "original",
    Original,
    start=_start,
    leader=_leader,
    plan=lambda policy, evidence, call: call,
    with_items=lambda evidence, n_items: evidence,
    outlook=_outlook,
    shown_as=Presentation(
        "OriginalRank",
        Look("#75757d", "#a3a3ad", (0, (1.2, 1.5)), "X"),
        PAPER,
        order=5,
        about="shows the original ranking and learns nothing",
    ),
)
