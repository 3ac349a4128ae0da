"""What the clicks on a page with a slot are worth: bets at the odds of its draw, and the certificates they win.

The places of the order form one group, the slot and the hidden places another; each was drawn by itself. In the slot's
group the shown item was drawn with probability proportional to its weight. In the order's group an exchange of two
items is possible under the law when the order it leads to is safe with every occupant of the slot: orders that are not
are drawn again, and that cancels in the odds of two that are.
"""

from typing import Any

from saferank._kernel import kernel
from saferank.policies.safe_draw.slot_plans import least_slack
from saferank.policies.shared.draws import odds_of_exchange
from saferank.statistics.bets import claim_row, has_won, settle_bet
from saferank.statistics.closure import certify_over, surely
from saferank.statistics.duels import keep_certificate
from saferank.verbs import NOBODY, Impression, Ints


@kernel
def _lay_out_page(state: Any, impression: Impression) -> int:
    """Put a page and the occupants of its slot into scratch; returns the place of the slot, or NOBODY."""
    plan, n_positions, places = state.plan, len(state.plan.page), impression.places[0]
    for place in range(n_positions):
        plan.page[place] = impression.ranking[place]
    if places == n_positions:
        return NOBODY
    slot = impression.start[n_positions]
    plan.others[0] = impression.ranking[slot]
    for place in range(n_positions, places):
        plan.others[1 + place - n_positions] = impression.ranking[place]
    return int(slot)


@kernel
def _slack_after(state: Any, impression: Impression, slot: int, a: int, b: int) -> int:
    """The slack of the page on the scratch page with two places exchanged, which are put back."""
    plan, occupants = state.plan, 1 + impression.places[0] - len(state.plan.page)
    plan.page[a], plan.page[b] = impression.ranking[b], impression.ranking[a]
    slack = least_slack(state, plan.page, slot, plan.others, occupants)
    plan.page[a], plan.page[b] = impression.ranking[a], impression.ranking[b]
    return slack


@kernel
def note_exchanges(state: Any, impression: Impression, a: int) -> None:
    """Fill in ``exchanges`` of a place.

    The exchange of two places of the order changes the relation of at most 2 |a - b| - 1 pairs, each of which costs at
    most 1, so most exchanges are safe without being priced. The page itself is priced first, as the exchange of a
    place with itself.
    """
    slot, bits, slack = _lay_out_page(state, impression), 0, 0
    in_slot = a == slot or a >= len(state.plan.page)
    for step in range(-1, impression.places[0]):
        b = a if step < 0 else step
        if step == a or impression.start[a] != impression.start[b] or (in_slot and step < 0):
            continue
        if step < 0:
            slack = _slack_after(state, impression, slot, a, b)
        elif in_slot or slack >= 2 * abs(a - b) - 1 or _slack_after(state, impression, slot, a, b) >= 0:
            bits |= 1 << b
    impression.exchanges[a] = bits


@kernel
def _is_open(state: Any, impression: Impression, clicks: Ints, a: int, b: int) -> bool:
    """True when the page compares the item of the clicked place a with that of b: both are here, not certified."""
    if impression.start[a] != impression.start[b] or a == b or (b < len(clicks) and clicks[b]):
        return False
    i, j = impression.ranking[a], impression.ranking[b]
    here = state.present[i] and state.present[j]
    return bool(here and not (surely(state.closure, i, j) or surely(state.closure, j, i)))


@kernel
def _settle_bets_of(policy: Any, state: Any, impression: Impression, clicks: Ints, a: int) -> bool:
    """Settle the bets of a clicked place. True when a pair may be certified."""
    found = False
    for b in range(impression.places[0]):
        if impression.exchanges[a] >> b & 1 and _is_open(state, impression, clicks, a, b):
            i, j = impression.ranking[a], impression.ranking[b]
            row, p0 = claim_row(state.duels, i, j), odds_of_exchange(impression, len(clicks), a, b)
            found |= settle_bet(policy.table, state.duels.book, row, int(i > j), p0)
    return found


@kernel
def settle_bets(policy: Any, state: Any, impression: Impression, clicks: Ints) -> bool:
    """Settle the bets of a page. True when a pair may be certified."""
    found = False
    for a in range(len(clicks)):
        if clicks[a]:
            if not impression.frozen[0]:
                note_exchanges(state, impression, a)
            found |= _settle_bets_of(policy, state, impression, clicks, a)
    return found


@kernel
def certify_winners(policy: Any, state: Any, impression: Impression, clicks: Ints) -> bool:
    """Certify the pairs of a page that have won, in the order of its places; not those that others imply by then."""
    certified = False
    for a in range(len(clicks)):
        for b in range(impression.places[0]):
            if clicks[a] and impression.exchanges[a] >> b & 1 and _is_open(state, impression, clicks, a, b):
                i, j = impression.ranking[a], impression.ranking[b]
                row = claim_row(state.duels, i, j)
                if has_won(policy.table, state.duels.book, row, int(i > j)):
                    keep_certificate(state.duels.certificates, i, j, impression.round[0])
                    certify_over(state.closure, state.present, i, j)
                    certified = True
    return certified
