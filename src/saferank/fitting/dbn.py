"""Estimation of DBN: exact EM over what a page hides, satisfaction and giving up.

A click at k with others below: the item did not satisfy, the user went on. The last click, with quiet = the probability
that nothing is clicked below if the user looks there, satisfaction s and continuation c, has one of three ends:

    satisfied: s      gave up: (1 - s) (1 - c)      looked on in vain: (1 - s) c quiet       (each divided by their sum)

The third is the weight with which the tail of the page counts (``tail.py``). The maximum is that of the likelihood
times a Beta(2, 2) prior on each coin, which is what (1 + heads) / (2 + tosses) maximises; it never falls from one
iteration to the next. PyClick mixes up positions in the tail of a page; this does not follow it.
"""

from saferank._kernel import implements, kernel
from saferank.click_models.dbn import DBN
from saferank.fitting.coins import Clicks, CoinCounts, add, count, count_tail, fill_quiet, last_click
from saferank.fitting.estimation import ITERATIONS, Fitted, maximise
from saferank.fitting.evaluation import foresee, still_looking
from saferank.logs.records import ClickLog
from saferank.verbs import Floats, Ints


def fit(log: ClickLog, iterations: int = ITERATIONS) -> Fitted:
    """Attraction and satisfaction of every pair, and the continuation of everybody."""
    return maximise(DBN, log, iterations)


@implements(count, DBN)
def _count(model: DBN, items: Ints, clicks: Clicks, weight: float, tally: CoinCounts) -> None:
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
def _foresee(model: DBN, items: Ints, clicks: Clicks, chances: Floats) -> None:
    belief = 1.0
    for k in range(len(items)):
        attraction = model.attraction[items[k]]
        chances[k] = belief * attraction
        unsatisfied = 1.0 - model.satisfaction[items[k]] if clicks[k] == 1 else still_looking(belief, attraction)
        belief = unsatisfied * model.continuation
