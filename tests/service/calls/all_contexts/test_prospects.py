"""Which contexts will decide nothing for long."""

import json
import math

import pytest

from saferank.service.calls.summary import days_to_decide, needed_lead
from saferank.service.knowledge.arms import DAY_MS, ComparedArms
from saferank.service.knowledge.knowledge import PairProgress, Terms
from saferank.service.protocol.all_contexts import ContextFigures
from saferank.statistics.decision import decision_rule
from saferank.store.contract import ContextRow

TERMS = {"policy": "kl-ucb-br", "rule": "paper:1e-5", "window_ms": 1000, "lifetime_ms": 0, "trust": 0.977}
TALLIES = [[100, 40, 50], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def judged(
    race: PairProgress, days: float, lifetime_days: float = 0, rule: str = "paper:1e-5", pages: int = 100
) -> bool:
    terms = {**TERMS, "rule": rule, "lifetime_ms": round(lifetime_days * DAY_MS)}
    row = ContextRow(1, "t", "c", json.dumps(terms), 0)
    epoch = int(days // lifetime_days) if lifetime_days else 0
    tallies = [[pages, 0, 0], *TALLIES[1:]]
    figures = ContextFigures(1, 3, 2, 0, (), (), tallies, epoch, race, {}, 0, 0, 0, ComparedArms(1))
    return days_to_decide(row, figures, round(days * DAY_MS)) == math.inf


@pytest.mark.parametrize(
    ("race", "days", "long"),
    [
        (PairProgress(9, 0, 60, 200), 30, False),  # 600 comparisons until then, a lead of 178; 167 are needed
        (PairProgress(9, 0, 20, 200), 30, True),  # a lead of 59 only
        (PairProgress(9, 0, 0, 5000), 30, True),  # two equal items
        (PairProgress(9, 0, 5, 5), 1.0, False),  # 450 comparisons: the lead of few is enough for now
        (PairProgress(9, 0, 5, 5), 60, True),  # 7 comparisons
        (PairProgress(0, 0, 0, 0), 30, True),  # nothing was compared in a month
        (PairProgress(9, 1, 0, 10), 30, False),  # it has decided something
    ],
)
def test_the_nearest_pair_is_carried_on_at_its_pace(race: PairProgress, days: float, long: bool) -> None:
    assert judged(race, days) is long


def test_new_contexts_and_those_with_few_pages_are_not_judged() -> None:
    assert judged(PairProgress(), 2) and not judged(PairProgress(), 0.9) and not judged(PairProgress(), 2, pages=29)
    assert not judged(PairProgress(), 28.5, lifetime_days=14), "evidence began half a day ago"


def test_terms_of_a_reset_are_judged_from_the_reset_on() -> None:
    row = ContextRow(1, "t", "c", json.dumps(TERMS), 0)
    figures = ContextFigures(1, 3, 2, 0, (), (), TALLIES, 1, PairProgress(), {}, 0, 0, 0, ComparedArms(1))
    reset = Terms("safe-draw", "anytime:1e-5", 1000, 14 * DAY_MS, opened_at=100 * DAY_MS, first_epoch=1)
    now = round(100.9 * DAY_MS)
    assert days_to_decide(row, figures, now) == math.inf
    assert days_to_decide(row, figures._replace(terms=reset), now) is None
    assert days_to_decide(row, figures._replace(terms=reset), now + DAY_MS) == math.inf


def test_a_decision_is_expected_when_the_lead_meets_the_rule() -> None:
    """Ten comparisons a day, of which eight lead: a lead of 6 a day."""
    row = ContextRow(1, "t", "c", json.dumps(TERMS), 0)
    figures = ContextFigures(1, 3, 2, 0, (), (), TALLIES, 0, PairProgress(9, 0, 60, 100), {}, 0, 0, 0, ComparedArms(1))
    days = days_to_decide(row, figures, 10 * DAY_MS)
    assert days is not None
    comparisons = math.floor(10 * (10 + days))
    assert 60 / 102 * comparisons >= needed_lead("paper:1e-5", comparisons)
    assert 60 / 102 * 0.9 * comparisons < needed_lead("paper:1e-5", round(0.9 * comparisons))
    decided = figures._replace(race=PairProgress(9, 1, 60, 100))
    assert days_to_decide(row, decided, 10 * DAY_MS) is None


def test_evidence_is_collected_for_two_epochs_at_most() -> None:
    race = PairProgress(9, 0, 30, 100)
    assert not judged(race, 10) and judged(race, 10, lifetime_days=14), "900 comparisons in 90 days, 280 in 28"


@pytest.mark.parametrize("rule", ["paper:1e-5", "anytime:1e-5"])
def test_the_needed_lead_is_the_rule_itself_up_to_its_table(rule: str) -> None:
    for n in (0, 10, 60, 1000, 4094):
        lead = needed_lead(rule, n)
        even = [s for s in range(n % 2, n + 1, 2) if s >= lead]
        assert [s for s in range(n % 2, n + 1, 2) if n and decision_rule(rule).decides(s, n)] == even


def test_beyond_its_table_the_needed_lead_is_near_the_rule() -> None:
    for rule in ("paper:1e-5", "anytime:1e-5"):
        n = 100_000
        lead = needed_lead(rule, n)
        assert decision_rule(rule).decides(2 * round(0.56 * lead), n)
        assert not decision_rule(rule).decides(2 * round(0.44 * lead), n)
