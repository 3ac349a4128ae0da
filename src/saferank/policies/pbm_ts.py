r"""PBM-TS: Thompson sampling for users who look at each position with a known probability kappa.

    theta_i ~ density proportional to the product over positions l of (kappa_l theta)^S_il (1 - kappa_l theta)^(N_il - S_il),

the posterior of the attraction of item i under a uniform prior after S_il clicks in N_il displays at position l. The K
items with the largest draws are shown, the largest at the position with the largest kappa. The sampler is exact:
``statistics/attraction.py``. It knows no original ranking and gives no promise about a single page.

P. Lagree, C. Vernade, O. Cappe: Multiple-Play Bandits in the Position-Based Model. NIPS 2016.

>>> from saferank import Ranker
>>> ranker = Ranker("pbm-ts", original=["a", "b"], candidates=["x"], examination=[1.0, 0.5])
>>> for visitor in range(100):
...     page = ranker.rank()
...     ranker.feedback(page, clicked=[item for item in page.items if item == "x"])
>>> ranker.leader[0]
'x'
"""  # noqa: E501 (the formula)

from typing import NamedTuple

import numpy as np

from saferank._kernel import implements
from saferank.policies.registry import PEER, Look, Outlook, Presentation, Setup, register
from saferank.policies.shared.best_items import best_items, show_items
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
from saferank.statistics.attraction import Posteriors, draw_attraction, new_posteriors, update_posterior
from saferank.verbs import Floats, Impression, Ints, choose, learn


class PbmTs(NamedTuple):
    """Hyper-parameters: the examination probabilities."""

    kappa: Floats  # by position


class PbmTsEvidence(NamedTuple):
    """Displays and clicks, and the posteriors they make."""

    displays: Displays
    posteriors: Posteriors
    kappa: Floats  # by position: what the posteriors of further items begin with


@implements(choose, PbmTs)
def _choose(policy: PbmTs, evidence: PbmTsEvidence, plan: PbmPlan, rng: Words, impression: Impression) -> None:
    for item in range(len(plan.present)):
        if plan.present[item]:
            plan.value[item] = draw_attraction(evidence.posteriors, policy.kappa, item, rng)
    best_items(plan.value, plan.present, plan.row)
    show_items(impression, plan.row, evidence.displays.places)


@implements(learn, PbmTs)
def _learn(policy: PbmTs, evidence: PbmTsEvidence, impression: Impression, clicks: Ints) -> None:
    count_displays(evidence.displays, policy.kappa, impression, clicks)
    for position in range(len(clicks)):
        item = impression.ranking[position]
        evidence.posteriors.clicks[item] += clicks[position]
        evidence.posteriors.failures[item, position] += 1 - clicks[position]
        update_posterior(evidence.posteriors, policy.kappa, item)


def _posteriors(kappa: Floats, displays: Displays) -> Posteriors:
    """The posteriors of all items from their counts."""
    posteriors = new_posteriors(*displays.shown.shape)
    posteriors.clicks[:] = displays.clicked.sum(axis=1)
    posteriors.failures[:] = displays.shown - displays.clicked
    for item in range(len(posteriors.clicks)):
        update_posterior(posteriors, kappa, item)
    return posteriors


def _start(setup: Setup) -> tuple[PbmTs, PbmTsEvidence]:
    kappa = known_examination("pbm-ts", setup)
    displays = new_displays(setup.n_items, kappa)
    return PbmTs(kappa), PbmTsEvidence(displays, _posteriors(kappa, displays), kappa.copy())


def _with_items(evidence: PbmTsEvidence, n_items: int) -> PbmTsEvidence:
    displays = with_more_items(evidence.displays, n_items)
    return PbmTsEvidence(displays, _posteriors(evidence.kappa, displays), evidence.kappa)


def _outlook(policy: PbmTs, evidence: PbmTsEvidence, plan: PbmPlan, issued: int) -> Outlook:
    unseen = int(np.sum(plan.present & (evidence.displays.mass == 0)))
    return Outlook(f"draws every attraction from its posterior and shows the largest; {unseen} items were never shown")


register(
    "pbm-ts",
    PbmTs,
    start=_start,
    leader=best_guess,
    plan=plan_of,
    with_items=_with_items,
    outlook=_outlook,
    needs_examination=True,
    made_for="pbm",
    shown_as=Presentation(
        "PBM-TS",
        Look("#7a4a2b", "#c99a78", (0, (4, 2, 1, 2)), ">"),
        PEER,
        order=22,
        about="Thompson sampling for the position-based model with known examination; not safe",
    ),
)
