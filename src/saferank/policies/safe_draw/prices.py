r"""The price of a page against the reference R: an upper bound of V(page) - V(R), in possibly wrong pairs.

A shown item r stands above z when z is shown below it or not at all. Every pair of which the page has r above z costs
1, unless R has r above z too or r is certified over z. Counted by item of the page:

* r of R: the items z above r in R that are not above r on the page, and over which r is not certified;
* r outside R at place k (from 1): L - k - #{z: r certified over z} + #{z above r on the page: r certified over z}.

A page is safe when its price is at most floor(L - K/2) + m. The proof is in docs/policies/safe-draw.md.
"""

from typing import Any

from saferank._kernel import kernel
from saferank.policies.safe_draw.references import Reference
from saferank.statistics.closure import Closure, certified_by, surely
from saferank.verbs import Ints


@kernel
def _price_of_ranked(reference: Reference, closure: Closure, seat: Ints, item: int, place: int) -> int:
    """``seat`` says for every place of R where its item is on the page, K if it is hidden."""
    price = 0
    for above in range(reference.place[item]):
        if seat[above] > place and not surely(closure, item, reference.row[above]):
            price += 1
    return price


@kernel
def _price_of_outsider(closure: Closure, page: Ints, place: int, n_present: int) -> int:
    price, certified = n_present - place - 1, certified_by(closure, page[place])
    if certified == 0:
        return price
    for above in range(place):
        certified -= int(surely(closure, page[place], page[above]))
    return price - certified


@kernel
def price_of(state: Any, page: Ints) -> int:
    """The price of a row of K items, given R and the certificates."""
    reference, closure, seat = state.reference, state.closure, state.plan.seat
    n_positions, price = len(page), 0
    for place in range(n_positions):
        seat[place] = n_positions
    for place in range(n_positions):
        if reference.place[page[place]] < n_positions:
            seat[reference.place[page[place]]] = place
    for place in range(n_positions):
        item = page[place]
        if reference.place[item] < n_positions:
            price += _price_of_ranked(reference, closure, seat, item, place)
        else:
            price += _price_of_outsider(closure, page, place, state.limit[1])
    return price


@kernel
def largest_price(state: Any) -> int:
    """The largest price of a safe page: floor(L - K/2) + m."""
    return int(state.limit[0] + state.reference.income[0])
