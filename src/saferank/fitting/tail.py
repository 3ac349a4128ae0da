"""Below the last click: did the user leave, or look on and find nothing? Shared by DBN and CCM.

Position k is examined with posterior probability reach[k]: 1 down to the last click, and below it, with attraction a
and the continuation c of a position without a click,

    quiet[k] = (1 - a[k]) * (c * quiet[k+1] + 1 - c),  quiet[end] = 1     no click from k on, if k is examined
    reach[k+1] = reach[k] * c * quiet[k+1] / (c * quiet[k+1] + 1 - c)     k + 1 is examined, given that nothing comes

The first is the backward pass of forward-backward, the second the forward pass; above the last click both are trivial,
because a click below proves that the user went on. The coins that would be tossed after the last position decide about
nothing and are left out: they would fall as they always do, and only slow EM down.
"""

from saferank._kernel import kernel
from saferank.fitting.coins import Clicks, CoinCounts, add
from saferank.verbs import Floats, Ints


@kernel
def last_click(clicks: Clicks) -> int:
    """The position (from 0) of the last click, -1 if there is none."""
    for k in range(len(clicks) - 1, -1, -1):
        if clicks[k] == 1:
            return k
    return -1


@kernel
def fill_quiet(attraction: Floats, continuation: float, items: Ints, start: int, quiet: Floats) -> None:
    """The probability of no click from each position on, if it is examined, for the positions from ``start`` on."""
    quiet[len(items)] = 1.0
    for k in range(len(items) - 1, start - 1, -1):
        goes_on = continuation * quiet[k + 1] + 1.0 - continuation
        quiet[k] = (1.0 - attraction[items[k]]) * goes_on


@kernel
def count_tail(items: Ints, start: int, coin: int, continuation: float, weight: float, tally: CoinCounts) -> None:
    """Count from ``start``, examined with posterior weight ``weight``, to the end of the page; no click is there."""
    reach = weight
    for k in range(start, len(items)):
        add(tally, items[k], 0.0, reach)
        if k + 1 < len(items):
            on = continuation * tally.quiet[k + 1]
            still = reach * on / (on + 1.0 - continuation)
            add(tally, coin, still, reach)
            reach = still
