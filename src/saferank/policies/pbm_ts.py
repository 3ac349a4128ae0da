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
    best_guess,
    count_displays,
    known_examination,
    new_displays,
    with_more_items,
)
from saferank.randomness import Words
from saferank.statistics.attraction import Posteriors, draw_attraction, new_posteriors, update_posterior
from saferank.verbs import Flags, Floats, Impression, Ints, Items, choose, learn


class PbmTs(NamedTuple):
    """Hyper-parameters: the examination probabilities."""

    kappa: Floats  # by position


class PbmTsState(NamedTuple):
    """Displays and clicks, and the posteriors they make; ``theta`` and ``row`` are room to compute in."""

    round: Ints  # [1] pages issued
    displays: Displays
    posteriors: Posteriors
    present: Flags  # by item
    theta: Floats  # by item: drawn for the newest page
    row: Items  # [position]


@implements(choose, PbmTs)
def _choose(policy: PbmTs, state: PbmTsState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    for item in range(len(state.present)):
        if state.present[item]:
            state.theta[item] = draw_attraction(state.posteriors, policy.kappa, item, rng)
    best_items(state.theta, state.present, state.row)
    show_items(impression, state.round[0], state.row, state.displays.places)


@implements(learn, PbmTs)
def _learn(policy: PbmTs, state: PbmTsState, impression: Impression, clicks: Ints) -> None:
    count_displays(state.displays, policy.kappa, impression, clicks)
    for position in range(len(clicks)):
        item = impression.ranking[position]
        state.posteriors.clicks[item] += clicks[position]
        state.posteriors.failures[item, position] += 1 - clicks[position]
        update_posterior(state.posteriors, policy.kappa, item)


def _posteriors(kappa: Floats, displays: Displays) -> Posteriors:
    """The posteriors of all items from their counts."""
    posteriors = new_posteriors(*displays.shown.shape)
    posteriors.clicks[:] = displays.clicked.sum(axis=1)
    posteriors.failures[:] = displays.shown - displays.clicked
    for item in range(len(posteriors.clicks)):
        update_posterior(posteriors, kappa, item)
    return posteriors


def _start(setup: Setup) -> tuple[PbmTs, PbmTsState]:
    kappa = known_examination("pbm-ts", setup)
    displays = new_displays(setup.n_items, kappa)
    state = PbmTsState(
        round=np.zeros(1, np.int64),
        displays=displays,
        posteriors=_posteriors(kappa, displays),
        present=np.ones(setup.n_items, np.bool_),
        theta=np.zeros(setup.n_items),
        row=np.zeros(setup.n_positions, np.uint32),
    )
    return PbmTs(kappa), state


def _regroup(policy: PbmTs, state: PbmTsState, present: Flags) -> PbmTsState:
    displays = with_more_items(state.displays, len(present))
    posteriors = _posteriors(policy.kappa, displays)
    return state._replace(displays=displays, posteriors=posteriors, present=present, theta=np.zeros(len(present)))


def _outlook(policy: PbmTs, state: PbmTsState) -> Outlook:
    unseen = int(np.sum(state.present & (state.displays.mass == 0)))
    return Outlook(f"draws every attraction from its posterior and shows the largest; {unseen} items were never shown")


register(
    "pbm-ts",
    PbmTs,
    start=_start,
    leader=best_guess,
    regroup=_regroup,
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
