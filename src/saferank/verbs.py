"""The verbs that do all the work. Read this first.

Clicks are evidence. A plan follows from evidence and from the call. A page is drawn from a plan, with known odds.

    choose(policy, evidence, plan, rng, impression)          draws a page: fills what will be shown
    freeze(policy, evidence, plan, impression, places)       notes on it what ``learn`` will need
    learn(policy, evidence, impression, clicks)              the only function that changes evidence
    follow(policy, evidence, plan, impression, clicks, issued)    brings a plan up to date with what was just learnt
    click(click_model, shown, rng, clicks)                   one simulated user
    expected_clicks(click_model, shown) -> float             the reward r(shown)

A policy is a NamedTuple of hyper-parameters, evidence and plan are NamedTuples of arrays, randomness is an argument.

* *Evidence* is what clicks have taught of items, by item and by pair. It grows with both. It knows no page size, no
  production ranking, no order of candidates, and not who asks.
* A *plan* is for one ``Call``: production's ranking, whose length is the page size, and the candidates in the call's
  order. It is made from the evidence and is a cache: ``renew`` derives it again at any time. Drawing writes to a plan
  only what no later draw reads.
* An *impression* is everything that ``learn`` needs later, frozen when the page is issued. It is a row of places of
  which the first ``n_positions`` are shown and the others are compared all the same (their click is 0), cut into
  *groups* of neighbouring places. Two items duel exactly when they stand in the same group and one of them was clicked:
  BubbleRank's pairs are groups of two, TopRank's blocks and UniRank's parts are larger ones. So late, lost, repeated
  and reordered feedback need nothing special.

Each verb dispatches on the type of its first argument, so an algorithm is added by implementing ``choose`` and
``learn`` for a new type; the others have defaults that do nothing. The compiled simulator and the live side call the
same verbs; neither knows any algorithm. The caller numbers the pages: ``impression.round`` is filled in before
``choose``.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import implements, kernel, verb
from saferank.randomness import Words

Items = NDArray[np.uint32]
"""Rows of items. Unsigned, because a signed index costs a check for negative values at every use."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

__all__ = [
    "NO_ITEM", "Call", "Flags", "Floats", "Impression", "Ints", "Items", "Words", "advance", "choose", "click",
    "expected_clicks", "follow", "freeze", "has_room", "implements", "is_outdated", "kernel", "learn", "new_impression",
    "plan_has_room", "renew", "shows_one_page",
]  # fmt: skip

NO_ITEM = -1
"""Stands where there is no item: no challenger, no hidden item."""


class Call(NamedTuple):
    """What a plan is for; pinned items are taken out. It is itself the plan of a policy that needs no other."""

    base: Items  # production's ranking, best first: as many items as a page shows
    candidates: Items  # the others that may be shown, in the order in which untried ones should be tried


class Impression(NamedTuple):
    """One page: what is shown, what is compared, and with whom."""

    round: Ints  # [1] number of this page, from 1; given by the caller
    ranking: Items  # items by place: shown ones first, then those compared without being shown
    start: Ints  # by place: the first place of its group
    end: Ints  # by place: one past the last place of its group
    places: Ints  # [1] how many places are in use
    challenger: Ints  # [1] the item that contends for the last position, or NO_ITEM
    shown: Items  # a view of the first n_positions places of ranking
    weight: Floats  # by place: of a page drawn item by item, the weight of its item in the draw
    exchanges: Ints  # by place: bits of the places with which the draw could have exchanged it, see ``freeze``


def new_impression(n_positions: int, n_places: int) -> Impression:
    """An empty impression with room for ``n_places`` compared items."""
    ranking = np.zeros(max(n_positions, n_places), np.uint32)
    return Impression(
        round=np.zeros(1, np.int64),
        ranking=ranking,
        start=np.zeros(len(ranking), np.int64),
        end=np.zeros(len(ranking), np.int64),
        places=np.zeros(1, np.int64),
        challenger=np.full(1, NO_ITEM, np.int64),
        shown=ranking[:n_positions],
        weight=np.zeros(len(ranking)),
        exchanges=np.zeros(len(ranking), np.int64),
    )


_optional = functools.partial(verb, default=True)


@verb
def choose(policy: Any, evidence: Any, plan: Any, rng: Words, impression: Impression) -> None:
    """Draw the page number ``impression.round[0]``. Evidence stays as it is, and so does what the next draw reads."""


@_optional
def freeze(policy: Any, evidence: Any, plan: Any, impression: Impression, places: Ints) -> None:
    """Note on a page what ``learn`` needs of the plan; ``places`` is not 0 for the shown places that may be clicked.

    A live page is frozen at all places when it is issued, since evidence and plan change until its clicks come. The
    simulator knows the clicks first, and freezes the clicked places only. Most policies need nothing.
    """


@verb
def learn(policy: Any, evidence: Any, impression: Impression, clicks: Ints) -> None:
    """Take the clicks (0 or 1 for each shown position) of a page into the evidence. Nothing else changes evidence."""


@_optional
def follow(policy: Any, evidence: Any, plan: Any, impression: Impression, clicks: Ints, issued: int) -> None:
    """Bring a plan up to date after ``learn`` with the same page; ``issued`` pages are out by now.

    For a plan that is kept from page to page. The bubble policies move their leader here.
    """


@_optional
def renew(policy: Any, evidence: Any, plan: Any, issued: int) -> None:
    """Derive a plan from the evidence and from the call that it holds, whatever was in it; ``issued`` pages are out."""


@_optional
def is_outdated(policy: Any, evidence: Any, plan: Any) -> bool:
    """True when ``follow`` would have derived a plan again since it was made, for a caller that keeps it meanwhile."""
    return True


@_optional
def advance(policy: Any, evidence: Any, issued: int) -> bool:
    """After ``issued`` pages: begin the epoch of the next one. True when another one began: then plans are outdated.

    Nothing for a policy whose certificates have no lifetime.
    """
    return False


@_optional
def has_room(policy: Any, evidence: Any, places: int) -> bool:
    """True when one more page with ``places`` places can be learnt without growth: kernels never allocate."""
    return True


@_optional
def plan_has_room(policy: Any, plan: Any) -> bool:
    """True when a plan can follow one more page without anything growing."""
    return True


@_optional
def shows_one_page(policy: Any) -> bool:
    """True when every page of the policy is the same, whatever is clicked.

    The simulator then asks for one page and simulates no further clicks: regret is of expected rewards.
    """
    return False


@verb
def click(model: Any, shown: Items, rng: Words, clicks: Ints) -> None:
    """Let one simulated user look at ``shown`` and fill ``clicks`` (one entry per position) with 0 and 1."""


@verb
def expected_clicks(model: Any, shown: Items) -> float:
    """The expected number of clicks on ``shown``."""
    raise NotImplementedError
