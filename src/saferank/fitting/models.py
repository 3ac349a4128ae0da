"""Estimation of the click models: for each the two verbs that it needs, ``count`` and ``foresee``.

``count`` is the E-step of one page (``coins.py``); ``foresee`` fills the chance of each click given those above
(``evaluation.py``). EM is as in PyClick: 50 iterations from 1/2, all coins updated together. The maximum is that of
the likelihood times a Beta(2, 2) prior on each coin, which is what (1 + heads) / (2 + tosses) maximises; it never falls
from one iteration to the next. Where nothing is hidden a single sweep is the whole estimation.
"""

from functools import partial

from saferank._kernel import implements, kernel
from saferank.click_models import CCM, CM, DBN, DCM, PBM, UBM
from saferank.fitting.coins import Clicks, CoinCounts, add, count, count_tail, fill_quiet, last_click, toss_both
from saferank.fitting.estimation import Estimator, count_once, maximise
from saferank.fitting.evaluation import foresee, still_looking
from saferank.verbs import Floats, Ints

# PBM: every position tosses the coin of its item and its own; a click needs both heads.
#
# P(click at k | clicks above) = examination[k] * attraction[item at k].
#
# Only products of an attraction and an examination can be known from clicks; their common scale is where EM comes to
# rest.


@implements(count, PBM)
def _count_pbm(model: PBM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    for k in range(len(items)):
        chances = model.attraction[items[k]], model.examination[k]
        toss_both(tally, (items[k], len(model.attraction) + k), chances, clicks[k] == 1, weight)


@implements(foresee, PBM)
def _foresee_pbm(model: PBM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    for k in range(len(items)):
        chances[k] = model.examination[k] * model.attraction[items[k]]


# CM: count the positions up to the first click (all of them without one), and the clicks among them.
#
# attraction = (1 + first clicks) / (2 + times looked at). P(click at k | clicks above) = attraction[item at k], and 0
# below a click: to CM a page with two clicks is impossible, and its likelihood says so. One sweep, as in PyClick.


@implements(count, CM)
def _count_cm(model: CM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    for k in range(len(items)):
        add(tally, items[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            return


@implements(foresee, CM)
def _foresee_cm(model: CM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    looking = True
    for k in range(len(items)):
        chances[k] = model.attraction[items[k]] if looking else 0.0
        looking = looking and clicks[k] == 0


# DCM: count positions up to the last click (all without one); the last click is where users stop.
#
# attraction = (1 + clicks) / (2 + times shown not below the last click),
# continuation[k] = (1 + clicks at k with another below) / (2 + clicks at k).
#
# This is PyClick's estimator, one sweep. It assumes that users leave at the last click. A user who went on and
# found nothing looks the same, so it is not the maximum of the likelihood: attraction comes out too high and
# continuation too low, the more so the likelier it is that nothing below a click attracts. The likelihood below it is
# exact all the same: with belief = P(position k is examined | clicks above), P(click at k | clicks above) = belief *
# attraction.


@implements(count, DCM)
def _count_dcm(model: DCM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last = last_click(clicks)
    for k in range(len(items) if last < 0 else last + 1):
        add(tally, items[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            add(tally, len(model.attraction) + k, weight if k < last else 0.0, weight)


@implements(foresee, DCM)
def _foresee_dcm(model: DCM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        belief = model.continuation[k] if clicks[k] == 1 else still_looking(belief, attraction)


# DBN: exact EM over what a page hides, satisfaction and giving up.
#
# A click at k with others below: the item did not satisfy, the user went on. The last click, with quiet = the
# probability that nothing is clicked below if the user looks there, satisfaction s and continuation c, has one of three
# ends:
#
#     satisfied: s     gave up: (1 - s) (1 - c)     looked on in vain: (1 - s) c quiet     (each divided by their sum)
#
# The third is the weight with which the tail of the page counts (``count_tail``). PyClick mixes up positions in the
# tail of a page; this does not follow it.


@implements(count, DBN)
def _count_dbn(model: DBN, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last, n_pairs = last_click(clicks), len(model.attraction)
    fill_quiet(model.attraction, model.continuation, items, last + 1, tally.quiet)
    for k in range(last):
        add(tally, items[k], weight * clicks[k], weight)
        add(tally, n_pairs + items[k], 0.0, weight * clicks[k])
        add(tally, 2 * n_pairs, weight, weight)
    reach = weight if last < 0 else _count_last_click(model, items, last, weight, tally)
    count_tail(items, last + 1, 2 * n_pairs, model.continuation, reach, tally)


@kernel
def _count_last_click(model: DBN, items: Ints, last: int, weight: float, tally: CoinCounts) -> float:
    """Count the last click; returns the posterior weight of having looked on in vain."""
    pair, n_pairs = items[last], len(model.attraction)
    add(tally, pair, weight, weight)
    if last + 1 == len(items):
        return 0.0  # nothing below: whether it satisfied decides about nothing
    satisfied = model.satisfaction[pair]
    in_vain: float = (1.0 - satisfied) * model.continuation * tally.quiet[last + 1]
    share: float = weight / (satisfied + (1.0 - satisfied) * (1.0 - model.continuation) + in_vain)
    add(tally, n_pairs + pair, satisfied * share, weight)
    add(tally, 2 * n_pairs, in_vain * share, weight - satisfied * share)
    return in_vain * share


@implements(foresee, DBN)
def _foresee_dbn(model: DBN, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        unsatisfied = 1.0 - model.satisfaction[items[k]] if clicks[k] == 1 else still_looking(belief, attraction)
        belief = unsatisfied * model.continuation


# UBM: as PBM, with an examination coin for every position and every last click above it.
#
# P(click at r | clicks above) = examination[r, c] * attraction[item at r], c the last click above (0: none).
#
# The clicks above are seen, so nothing but the two coins is hidden. Like PBM's,
# attraction and examination share a scale that clicks cannot tell.


@implements(count, UBM)
def _count_ubm(model: UBM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last = 0
    for r in range(len(items)):
        chances = model.attraction[items[r]], model.examination[r, last]
        coin = len(model.attraction) + r * (r + 1) // 2 + last  # row r of the triangle has r + 1 coins
        toss_both(tally, (items[r], coin), chances, clicks[r] == 1, weight)
        if clicks[r] == 1:
            last = r + 1


@implements(foresee, UBM)
def _foresee_ubm(model: UBM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    last = 0
    for r in range(len(items)):
        chances[r] = model.examination[r, last] * model.attraction[items[r]]
        if clicks[r] == 1:
            last = r + 1


# CCM: exact EM over what a page hides, the relevance of what was clicked and giving up.
#
# A clicked item tosses its attraction coin a second time: was it relevant? Then the user continues with probability c
# of a relevant or of a nonrelevant click. What the page shows afterwards has, under each of the two, the probability
#
#     with a click below: c          at the last click: c * quiet + 1 - c        (quiet: no click below if looked at)
#
# so that P(relevant) = a * shown(relevant) / (a * shown(relevant) + (1 - a) * shown(nonrelevant)). PyClick mixes up
# positions in the tail of a page; this does not follow it.


@implements(count, CCM)
def _count_ccm(model: CCM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
    last, no_click = last_click(clicks), len(model.attraction)
    fill_quiet(model.attraction, model.continuation_no_click, items, last + 1, tally.quiet)
    reach = weight
    for k in range(last + 1):
        add(tally, items[k], weight * clicks[k], weight)
        if clicks[k] == 0:
            add(tally, no_click, weight, weight)
        elif k + 1 < len(items):
            below = (1.0, 0.0) if k < last else (tally.quiet[k + 1], 1.0)
            reach = _count_relevance(model, items[k], below, weight, tally)
    count_tail(items, last + 1, no_click, model.continuation_no_click, reach, tally)


@kernel
def _count_relevance(model: CCM, pair: int, below: tuple[float, float], weight: float, tally: CoinCounts) -> float:
    """Count what followed a click; ``below`` is how likely that is if the user goes on, and if not.

    Returns the posterior weight of going on.
    """
    attraction = model.attraction[pair]
    if_relevant = attraction * _seen(model.continuation_click_relevant, below)
    share = weight / (if_relevant + (1.0 - attraction) * _seen(model.continuation_click_nonrelevant, below))
    relevant = if_relevant * share
    on_nonrelevant: float = (1.0 - attraction) * model.continuation_click_nonrelevant * below[0] * share
    on_relevant: float = attraction * model.continuation_click_relevant * below[0] * share
    add(tally, pair, relevant, weight)
    add(tally, len(model.attraction) + 1, on_nonrelevant, weight - relevant)
    add(tally, len(model.attraction) + 2, on_relevant, relevant)
    return on_nonrelevant + on_relevant


@kernel
def _seen(continuation: float, below: tuple[float, float]) -> float:
    return continuation * below[0] + (1.0 - continuation) * below[1]


@implements(foresee, CCM)
def _foresee_ccm(model: CCM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        if clicks[k] == 1:
            relevant = attraction * model.continuation_click_relevant
            belief = relevant + (1.0 - attraction) * model.continuation_click_nonrelevant
        else:
            belief = still_looking(belief, attraction) * model.continuation_no_click


ESTIMATORS: dict[str, Estimator] = {
    "pbm": partial(maximise, PBM),
    "cm": partial(count_once, CM),
    "dcm": partial(count_once, DCM),
    "dbn": partial(maximise, DBN),
    "ubm": partial(maximise, UBM),
    "ccm": partial(maximise, CCM),
}


def estimator(name: str) -> Estimator:
    """The estimator of the click model of this name.

    >>> estimator("pbm") is ESTIMATORS["pbm"]
    True
    """
    if name not in ESTIMATORS:
        raise ValueError(f"no estimation for click model {name!r}; known ones: {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]
