"""Estimation of CCM: exact EM over what a page hides, the relevance of what was clicked and giving up.

A clicked item tosses its attraction coin a second time: was it relevant? Then the user continues with probability c
of a relevant or of a nonrelevant click. What the page shows afterwards has, under each of the two, the probability

    with a click below: c          at the last click: c * quiet + 1 - c        (quiet: no click below if looked at)

so that P(relevant) = a * shown(relevant) / (a * shown(relevant) + (1 - a) * shown(nonrelevant)). The maximum is that of
the likelihood times a Beta(2, 2) prior on each coin, which is what (1 + heads) / (2 + tosses) maximises; it never falls
from one iteration to the next. PyClick mixes up positions in the tail of a page; this does not follow it.
"""

from saferank._kernel import implements, kernel
from saferank.click_models.ccm import CCM
from saferank.fitting.coins import Clicks, CoinCounts, add, count, count_tail, fill_quiet, last_click
from saferank.fitting.estimation import ITERATIONS, Fitted, maximise
from saferank.fitting.evaluation import foresee, still_looking
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction of every pair, and the three continuations of everybody."""
    return maximise(CCM, log, iterations)


@implements(count, CCM)
def _count(model: CCM, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
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
def _foresee(model: CCM, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        if clicks[k] == 1:
            relevant = attraction * model.continuation_click_relevant
            belief = relevant + (1.0 - attraction) * model.continuation_click_nonrelevant
        else:
            belief = still_looking(belief, attraction) * model.continuation_no_click
