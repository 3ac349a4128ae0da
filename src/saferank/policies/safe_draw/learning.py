"""The evidence of safe-draw, and how a page is learnt: its bets are settled, whichever plan it was drawn from.

A page carries the weights of its draw and, for each clicked place, the places with which the draw could have exchanged
it (``freeze``). Nothing else is needed. A page without clicks settles no bet; it counts for the guesses, which propose
what to try.
"""

from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import kernel, seldom
from saferank.policies.safe_draw.appeal import Appeal, fade_appeal, new_appeal, note_page, with_more_appeal
from saferank.policies.safe_draw.constants import CALMED_EXPOSURE, EXPOSURE, MOST_POSITIONS, RACERS
from saferank.policies.safe_draw.draw import fill_tails, has_target, is_whole, odds_of, odds_of_exchange
from saferank.policies.safe_draw.trust import Trust, new_trust, trust_with_more
from saferank.safety.worst_order import number_of_lowest
from saferank.statistics.bets import Bets, new_bets, settle_bet, with_more_items
from saferank.statistics.certificates import ADDED, NOTHING, TAKEN
from saferank.statistics.epochs import begin_epoch, certify, has_epochs, is_bet_on, sound_alarm, still_counts
from saferank.statistics.pairs import claim_row
from saferank.verbs import Floats, Impression, Ints


class Scratch(NamedTuple):
    """Room to settle the bets of a page."""

    rival: Ints  # the places with which one is compared
    odds: Floats  # at which odds
    tails: Floats  # by place


class SafeDrawEvidence(NamedTuple):
    """What clicks have taught of items: bets on pairs, and guesses that only propose what to try."""

    learned: Ints  # [1] pages learnt from
    changes: Ints  # [2] how often certificates were added, and how often some do not hold any more
    appeal: Appeal
    trust: Trust
    duels: Bets
    scratch: Scratch


def new_evidence(n_items: int, lifetime: int | None, n_pairs: int) -> SafeDrawEvidence:
    """Nothing is known; room for ``n_pairs`` pairs at first."""
    places = MOST_POSITIONS + RACERS
    return SafeDrawEvidence(
        learned=np.zeros(1, np.int64),
        changes=np.zeros(2, np.int64),
        appeal=new_appeal(n_items, MOST_POSITIONS),
        trust=new_trust(n_items),
        duels=new_bets(n_items, lifetime, n_pairs),
        scratch=Scratch(np.zeros(places, np.int64), np.zeros(places), np.zeros(places)),
    )


def with_items(evidence: SafeDrawEvidence, n_items: int) -> SafeDrawEvidence:
    """The same evidence with room for ``n_items`` items."""
    return evidence._replace(
        appeal=with_more_appeal(evidence.appeal, n_items),
        trust=trust_with_more(evidence.trust, n_items),
        duels=with_more_items(evidence.duels, n_items),
    )


@kernel
def learn_page(policy: Any, evidence: SafeDrawEvidence, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page, then do what follows. A page that is older than the epoch before says nothing."""
    clicked, moved = 0, False
    for place in range(len(clicks)):
        clicked |= int(clicks[place] != 0) << place  # no branch, since a click cannot be predicted
    evidence.learned[0] += 1
    if not still_counts(evidence.duels, impression.round[0]):
        return
    note_page(evidence.appeal, impression, clicks)
    if not clicked:
        return
    evidence.trust.clicked[0] += 1
    renewing, whole = has_epochs(evidence.duels) and has_target(impression), is_whole(impression)
    if whole:
        fill_tails(impression.weight, evidence.scratch.tails[: len(clicks)], impression.places[0])
    for place in range(len(clicks)):
        if clicks[place]:
            rivals = _rivals(impression, place, clicked)
            if rivals:
                moved |= _settle_place(policy, evidence, impression, (place, rivals, len(clicks)), whole, renewing)
    if moved:
        _follow_bets(policy, evidence, impression, clicks, clicked)


@kernel
def _rivals(impression: Impression, place: int, clicked: int) -> int:
    """As bits, the places with which a clicked one is compared: not clicked, and the draw could have exchanged them."""
    places = (1 << impression.places[0]) - 1  # a page with a target has marks above its places
    return int(impression.exchanges[place] & ~clicked & places)


@kernel
def _settle_place(
    policy: Any,
    evidence: SafeDrawEvidence,
    impression: Impression,
    page: tuple[int, int, int],
    whole: bool,
    renewing: bool,
) -> bool:
    """Bet the item of a clicked place against those of other places; True when something may follow.

    The order of the bets does not matter, since each is about another pair. All odds come first: the processor divides
    for several at a time if there is little in between.
    """
    (place, rivals, shown), duels, scratch = page, evidence.duels, evidence.scratch
    i, moved, size = impression.ranking[place], False, 0
    while rivals:
        other = number_of_lowest(rivals)
        rivals &= rivals - 1
        if is_bet_on(duels, i, impression.ranking[other]):
            scratch.rival[size] = other
            if whole and not renewing:
                scratch.odds[size] = odds_of(impression.weight, scratch.tails[:shown], place, other)
            else:
                scratch.odds[size] = odds_of_exchange(impression, shown, (place, other), renewing)
            size += 1
    for entry in range(size):
        j = impression.ranking[scratch.rival[entry]]
        row = claim_row(duels, i, j)
        moved |= settle_bet(policy.table, duels, row, int(i > j), scratch.odds[entry], impression.round[0])
    return moved


@seldom
def _follow_bets(policy: Any, evidence: SafeDrawEvidence, impression: Impression, clicks: Ints, clicked: int) -> None:
    """Look at the pairs of a page for alarms, then for certificates, and do what follows from them."""
    duels, changed, alarmed = evidence.duels, NOTHING, False
    for step in range(2):
        for a in range(len(clicks)):
            rivals = _rivals(impression, a, clicked) if clicks[a] else 0
            for b in range(impression.places[0]):
                if rivals >> b & 1:
                    i, j = impression.ranking[a], impression.ranking[b]
                    if step == 0:
                        alarmed |= sound_alarm(duels, i, j)
                    else:
                        changed = max(changed, certify(policy.table, duels, i, j, impression.round[0]))
        if alarmed and step == 0:
            fade_appeal(evidence.appeal, CALMED_EXPOSURE)
            changed = TAKEN
    evidence.changes[0] += int(changed == ADDED)
    evidence.changes[1] += int(changed == TAKEN)


@seldom
def turn_epoch(evidence: SafeDrawEvidence, issued: int) -> bool:
    """Begin the epoch of the next page, if that is another one."""
    duels, before = evidence.duels, evidence.duels.epoch[0]
    if not begin_epoch(duels, issued):
        return False
    fade_appeal(evidence.appeal, EXPOSURE)
    evidence.changes[1] += (duels.epoch[0] - before) // duels.epoch[1]  # however many are begun at once
    return True
