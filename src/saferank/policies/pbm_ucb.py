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
    best_guess,
    count_displays,
    known_examination,
    new_displays,
    with_more_items,
)
from saferank.randomness import Words
from saferank.verbs import Flags, Floats, Impression, Ints, Items, choose, learn


class PbmUcb(NamedTuple):
    """Hyper-parameters: the examination probabilities."""

    kappa: Floats  # by position


class PbmUcbState(NamedTuple):
    """Displays and clicks, and what the bounds are made of; ``bound`` and ``row`` are room to compute in."""

    round: Ints  # [1] pages issued
    displays: Displays
    present: Flags  # by item
    rate: Floats  # by item: S_i / M_i
    spread: Floats  # by item: sqrt(N_i / M_i)
    bound: Floats  # by item: U_i
    row: Items  # [position]


@implements(choose, PbmUcb)
def _choose(policy: PbmUcb, state: PbmUcbState, rng: Words, impression: Impression) -> None:
    state.round[0] += 1
    logarithm = math.log(state.round[0])
    for item in range(len(state.present)):
        mass = state.displays.mass[item]
        if mass > 0:
            state.bound[item] = state.rate[item] + state.spread[item] * math.sqrt(logarithm / (2 * mass))
        else:
            state.bound[item] = np.inf
    best_items(state.bound, state.present, state.row)
    show_items(impression, state.round[0], state.row, state.displays.places)


@kernel
def _estimate(state: PbmUcbState, item: int) -> None:
    clicks, times = 0, 0
    for position in range(state.displays.shown.shape[1]):
        clicks += state.displays.clicked[item, position]
        times += state.displays.shown[item, position]
    state.rate[item] = clicks / state.displays.mass[item]
    state.spread[item] = math.sqrt(times / state.displays.mass[item])


@implements(learn, PbmUcb)
def _learn(policy: PbmUcb, state: PbmUcbState, impression: Impression, clicks: Ints) -> None:
    count_displays(state.displays, policy.kappa, impression, clicks)
    for position in range(len(clicks)):
        _estimate(state, impression.ranking[position])


def _start(setup: Setup) -> tuple[PbmUcb, PbmUcbState]:
    kappa = known_examination("pbm-ucb", setup)
    state = PbmUcbState(
        round=np.zeros(1, np.int64),
        displays=new_displays(setup.n_items, kappa),
        present=np.ones(setup.n_items, np.bool_),
        rate=np.zeros(setup.n_items),
        spread=np.zeros(setup.n_items),
        bound=np.zeros(setup.n_items),
        row=np.zeros(setup.n_positions, np.uint32),
    )
    return PbmUcb(kappa), state


def _regroup(policy: PbmUcb, state: PbmUcbState, present: Flags) -> PbmUcbState:
    n_items = len(present)
    return state._replace(
        displays=with_more_items(state.displays, n_items),
        present=present,
        rate=enlarged(state.rate, n_items),
        spread=enlarged(state.spread, n_items),
        bound=np.zeros(n_items),
    )


def _outlook(policy: PbmUcb, state: PbmUcbState) -> Outlook:
    unseen = int(np.sum(state.present & (state.displays.mass == 0)))
    return Outlook(f"shows the items with the largest optimistic attraction; {unseen} were never shown")


register(
    "pbm-ucb",
    PbmUcb,
    start=_start,
    leader=best_guess,
    regroup=_regroup,
    outlook=_outlook,
    needs_examination=True,
    made_for="pbm",
    shown_as=Presentation(
        "PBM-UCB",
        Look("#c2188a", "#f57dc8", (0, (7, 1, 2, 1)), "h"),
        PEER,
        order=21,
        about="made for the position-based model with known examination; not safe",
    ),
)
