"""Will a context decide anything soon? A simple estimate for a list, not a forecast (that is ``saferank forecast``).

Of every context the undecided pair that is nearest to a decision is known: its lead s in n comparisons, since the
present epoch of certificates began (evidence begins again with each). At this pace it is compared N times until the
horizon, and its lead will be N s / (n + 2): two comparisons are assumed to be level, so that one lucky click is no
lead. If the rule asks for more than that at N, the context is expected to decide nothing. Beyond 4,095 comparisons the
lead that is needed is taken to grow like the square root. The horizon is 90 days, but not longer than two epochs.
"""

import math

from saferank.service.protocol.contexts import terms_of
from saferank.service.queries.all_contexts.standings import Standing
from saferank.statistics.decision import NEVER, decision_rule
from saferank.store.contract import ContextRow

DAY_MS = 86_400_000
HORIZON_DAYS = 90
FEWEST_PAGES = 30
"""A context with fewer closed pages, or in the first day of an epoch, is not judged."""

_TABLE = 4095


def decides_nothing(row: ContextRow, standing: Standing, now: int) -> bool:
    """True when the context has decided nothing, and nothing speaks for a decision within the horizon."""
    terms, race = standing.terms or terms_of(row), standing.race
    lifetime = terms.lifetime_ms
    days = (now - terms.begin_of(standing.epoch)) / DAY_MS
    if race.decided or days < 1 or standing.pages < FEWEST_PAGES:
        return False
    horizon = min(HORIZON_DAYS, 2 * lifetime / DAY_MS) if lifetime else HORIZON_DAYS
    expected = math.floor(race.comparisons * max(1.0, horizon / days))
    lead = race.lead / (race.comparisons + 2) * expected
    return lead < needed_lead(terms.rule, expected)


def needed_lead(rule: str, n: int) -> float:
    """The lead that a rule asks for after n comparisons.

    >>> needed_lead("paper:1e-5", 47), round(needed_lead("paper:1e-5", 4 * 4095) / needed_lead("paper:1e-5", 4095), 3)
    (47.0, 2.0)
    """
    lead = float(decision_rule(rule).table(_TABLE)[min(n, _TABLE)])
    return math.inf if lead >= NEVER else lead * math.sqrt(max(1.0, n / _TABLE))
