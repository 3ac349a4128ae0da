r"""PBM-UCB: made for users who look at each position with a known probability kappa, whatever stands elsewhere.

    U_i = S_i / M_i + sqrt(N_i / M_i) sqrt(log t / (2 M_i)),     M_i = sum of kappa over the displays of item i,

with S_i clicks in N_i displays; an item that was never shown has an infinite bound. The K items with the largest bounds
are shown, the largest at the position with the largest kappa. It knows no original ranking and gives no promise about a
single page.

P. Lagree, C. Vernade, O. Cappe: Multiple-Play Bandits in the Position-Based Model. NIPS 2016.

>>> from saferank import Ranker
>>> ranker = Ranker("pbm-ucb", original=["a", "b"], candidates=["x"], examination=[1.0, 0.5])
>>> for visitor in range(100):
...     page = ranker.rank()
...     ranker.feedback(page, clicked=[item for item in page.items if item == "x"])
>>> ranker.leader[0]
'x'
"""

import math
from typing import NamedTuple

import numpy as np

from saferank._kernel import implements, kernel
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.best_items import best_items, enlarged, show_items
from saferank.policies.shared.pbm_displays import (
    Displays,
    PbmPlan,
    best_guess,
    count_displays,
    known_examination,
    new_displays,
    plan_of,
    with_more_items,
)
from saferank.randomness import Words
from saferank.verbs import Floats, Impression, Ints, choose, learn


class PbmUcb(NamedTuple):
    """Hyper-parameters: the examination probabilities."""

    kappa: Floats  # by position


class PbmUcbEvidence(NamedTuple):
    """Displays and clicks, and what the bounds are made of."""

    displays: Displays
    rate: Floats  # by item: S_i / M_i
    spread: Floats  # by item: sqrt(N_i / M_i)


@implements(choose, PbmUcb)
def _choose(policy: PbmUcb, evidence: PbmUcbEvidence, plan: PbmPlan, rng: Words, impression: Impression) -> None:
    logarithm = math.log(impression.round[0])
    for item in range(len(plan.present)):
        mass = evidence.displays.mass[item]
        if mass > 0:
            plan.value[item] = evidence.rate[item] + evidence.spread[item] * math.sqrt(logarithm / (2 * mass))
        else:
            plan.value[item] = np.inf
    best_items(plan.value, plan.present, plan.row)
    show_items(impression, plan.row, evidence.displays.places)


@kernel
def _estimate(evidence: PbmUcbEvidence, item: int) -> None:
    clicks, times = 0, 0
    for position in range(evidence.displays.shown.shape[1]):
        clicks += evidence.displays.clicked[item, position]
        times += evidence.displays.shown[item, position]
    evidence.rate[item] = clicks / evidence.displays.mass[item]
    evidence.spread[item] = math.sqrt(times / evidence.displays.mass[item])


@implements(learn, PbmUcb)
def _learn(policy: PbmUcb, evidence: PbmUcbEvidence, impression: Impression, clicks: Ints) -> None:
    count_displays(evidence.displays, policy.kappa, impression, clicks)
    for position in range(len(clicks)):
        _estimate(evidence, impression.ranking[position])


def _start(setup: Setup) -> tuple[PbmUcb, PbmUcbEvidence]:
    kappa = known_examination("pbm-ucb", setup)
    rate, spread = np.zeros((2, setup.n_items))
    return PbmUcb(kappa), PbmUcbEvidence(new_displays(setup.n_items, kappa), rate, spread)


def _with_items(evidence: PbmUcbEvidence, n_items: int) -> PbmUcbEvidence:
    displays = with_more_items(evidence.displays, n_items)
    return PbmUcbEvidence(displays, enlarged(evidence.rate, n_items), enlarged(evidence.spread, n_items))


def _outlook(policy: PbmUcb, evidence: PbmUcbEvidence, plan: PbmPlan, issued: int) -> Outlook:
    unseen = int(np.sum(plan.present & (evidence.displays.mass == 0)))
    return Outlook(f"shows the items with the largest optimistic attraction; {unseen} were never shown")


register(
    "pbm-ucb",
    PbmUcb,
    start=_start,
    leader=best_guess,
    plan=plan_of,
    with_items=_with_items,
    outlook=_outlook,
    needs_examination=True,
    made_for="pbm",
    shown_as=Presentation(
        "PBM-UCB",
        Look("#6f3fb8", "#b79bf0", (0, (7, 1, 2, 1)), "v"),
        PEER,
        order=21,
        about="made for the position-based model with known examination; not safe",
    ),
)
