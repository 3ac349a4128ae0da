"""What both plans of safe-draw do alike: the bets of a page were settled, or an epoch has ended; what follows from it.

A plan is a type of state. What differs between the two is a verb here, with a case beside each plan.
"""

from typing import Any

from saferank._kernel import kernel, seldom, verb
from saferank.policies.safe_draw.constants import CALMED_EXPOSURE, EXPOSURE, PAGES_OF_A_PLAN
from saferank.randomness import Words
from saferank.statistics.bets import bets_have_room
from saferank.statistics.certificates import NOTHING, TAKEN
from saferank.statistics.epochs import begin_epoch, certify, sound_alarm
from saferank.verbs import Impression, Ints


@verb
def draw_from_plan(state: Any, policy: Any, rng: Words, impression: Impression) -> None:
    """Issue the next page, from a new plan if the last one has served its pages."""


@verb
def note_exchanges(state: Any, policy: Any, impression: Impression) -> None:
    """Note on a page which exchanges are possible now, for clicks that come after something else was learnt."""


@verb
def settle_bets(state: Any, policy: Any, impression: Impression, clicks: Ints) -> None:
    """Settle the bets of a page, then do what follows. A page that is older than the epoch before says nothing."""


@verb
def is_here(state: Any, item: int) -> bool:
    """True for an item that may be shown now."""
    raise NotImplementedError


@verb
def fade_guesses(state: Any, exposure: float) -> None:
    """Let what is only guessed about an item count for no more than this exposure: the world may have changed."""


@verb
def follow_certificates(state: Any, changed: int) -> None:
    """Derive R from what is certain now, and end the plan; ``changed`` says what happened to the certificates."""


@verb
def most_compared(state: Any) -> int:
    """How many places a page may compare."""
    raise NotImplementedError


@kernel
def count_learned(state: Any) -> None:
    """Count a page that is learnt. Another plan is made after so many of them, whoever asks for pages in between."""
    state.learned[0] += 1
    if state.learned[0] % PAGES_OF_A_PLAN == 0:
        state.plan.stale[0] = 1


@kernel
def compares(state: Any, impression: Impression, clicks: Ints, a: int, b: int) -> bool:
    """True when a page compares the items of the clicked place a and of place b.

    They were drawn together, the draw could have exchanged them, b was not clicked, and both are here.
    """
    if impression.start[a] != impression.start[b] or not impression.exchanges[a] >> b & 1:
        return False
    unclicked = b >= len(clicks) or not clicks[b]
    return bool(unclicked and is_here(state, impression.ranking[a]) and is_here(state, impression.ranking[b]))


@seldom
def follow_bets(policy: Any, state: Any, impression: Impression, clicks: Ints) -> None:
    """Look at the pairs of a page for alarms, then for certificates, and do what follows from them."""
    duels, changed, alarmed = state.duels, NOTHING, False
    for step in range(2):
        for a in range(len(clicks)):
            for b in range(impression.places[0] if clicks[a] else 0):
                if compares(state, impression, clicks, a, b):
                    i, j = impression.ranking[a], impression.ranking[b]
                    if step == 0:
                        alarmed |= sound_alarm(duels, i, j)
                    else:
                        changed = max(changed, certify(policy.table, duels, i, j, impression.round[0]))
        if alarmed and step == 0:
            fade_guesses(state, CALMED_EXPOSURE)
            changed = TAKEN
    if changed != NOTHING:
        follow_certificates(state, changed)


@seldom
def turn_epoch(state: Any) -> None:
    """Begin the epoch of the next page, if that is another one."""
    if begin_epoch(state.duels, state.round[0]):
        fade_guesses(state, EXPOSURE)
        follow_certificates(state, TAKEN)


@kernel
def has_room_for_page(state: Any) -> bool:
    """True when one more page can be learnt without anything growing."""
    return bets_have_room(state.duels, most_compared(state))
