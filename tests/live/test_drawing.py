"""What safe-draw says of its bets, its working order and the risk of a page."""

import math
import random
from typing import Any

import pytest

from saferank import Ranker
from saferank.live.drawing import Evidence
from saferank.live.page import Risk
from saferank.statistics.pairs import row_of
from tests.policies.all_orders import consistent, worst_excess

TASTE: dict[str | int, float] = {"a": 0.3, "b": 0.1, "c": 0.2, "x": 0.6, "y": 0.5}


def trained(pages: int = 300, lifetime: int | None = None, more: int = 0) -> Ranker:
    candidates = ["x", "y", *(f"more{number}" for number in range(more))]
    options: Any = {"rule": "anytime:1e-2", "seed": 1, "lifetime": lifetime, "trust": 0.5}
    ranker, users = Ranker("safe-draw", original=["a", "b", "c"], candidates=candidates, **options), random.Random(4)
    for _ in range(pages):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if users.random() < TASTE.get(item, 0.05)])
    return ranker


def certified(ranker: Ranker) -> set[tuple[int, int]]:
    kept = ranker._learner.evidence.duels.certificates
    size = int(kept.given[0])
    return set(zip(kept.better[:size].tolist(), kept.worse[:size].tolist(), strict=True))


def test_the_evidence_is_the_mean_capital_of_the_bets() -> None:
    ranker = trained()
    index, bets = ranker._learner.index, ranker._learner.evidence.duels
    for pair in ranker.explain().pairs:
        i, j = index[pair.upper], index[pair.lower]
        capital = bets.capital[2 * row_of(bets, i, j) + int(i > j)]
        assert pair.evidence is not None
        assert pair.evidence.capital == pytest.approx(sum(map(math.exp, capital)) / 8)
        assert pair.evidence.needed == pytest.approx(100)


@pytest.mark.parametrize("options", [{}, {"lifetime": 200}, {"more": 12}, {"more": 12, "lifetime": 200}])
def test_a_pair_is_told_by_its_evidence(options: dict[str, int]) -> None:
    told = trained(**options).explain()
    text = str(told)
    assert "s=" not in text and " of 100 needed)" in text
    for pair in told.pairs:
        assert pair.evidence is not None and pair.evidence.capital > 0
        assert pair.decided or pair.evidence.capital < pair.evidence.needed


def test_a_certificate_is_given_when_the_evidence_reaches_what_is_needed() -> None:
    ranker = trained()
    found = certified(ranker)
    assert found
    for pair in ranker.explain().pairs:
        direct = (ranker._learner.index[pair.upper], ranker._learner.index[pair.lower]) in found
        assert pair.evidence is not None
        assert direct == (pair.evidence.capital >= pair.evidence.needed)
        assert ("decided by other certificates" in str(pair)) == (pair.decided and not direct)


def test_the_risk_is_the_worst_case_over_all_orders() -> None:
    ranker = trained()
    orders, index = consistent(5, certified(ranker)), ranker._learner.index
    for _ in range(40):
        page = ranker.rank()
        risk = ranker.explain(page).risk
        assert risk is not None
        assert risk.worst == worst_excess(orders, [0, 1, 2], [index[item] for item in page.items])
        assert risk.worst <= risk.allowance == 3


def test_the_risk_speaks_of_production_s_ranking() -> None:
    assert str(Risk(7)) == "a page may have at most 7 wrong pairs more than production's ranking"
    rest = "production's ranking, whatever the order of undecided pairs; 7 more are allowed"
    assert str(Risk(7, 1)) == f"this page has at most 1 wrong pair more than {rest}"
    assert str(Risk(7, -2)) == f"this page has at least 2 wrong pairs fewer than {rest}"
    ranker = trained(3)
    text = str(ranker.explain(ranker.rank()))
    assert "worst case: this page has at most" in text and "challenger" not in text and "blocks" not in text


@pytest.mark.parametrize("more", [0, 12])
def test_the_working_order_is_the_likeliest_page(more: int) -> None:
    """The reference waits for certificates; pages follow the working order long before."""
    ranker = trained(120, more=more)
    told = ranker.explain()
    assert told.working is not None
    assert sorted(told.working[:1]) == ["x"] or more
    assert len(set(told.working)) == 3
    assert f"working order: {', '.join(map(str, told.working))} " in str(told)
    shown = [item for _ in range(60) for item in ranker.rank().items]
    usual = sorted(set(shown), key=shown.count)[-2:]
    assert set(usual) <= set(told.working)


def test_before_the_first_page_it_is_production_s_ranking() -> None:
    for more in (0, 12):
        assert trained(0, more=more).explain().working == ("a", "b", "c")


def test_numbers_are_rounded_for_people() -> None:
    assert str(Evidence(210.4, 100_000.0)) == "evidence 210 of 100,000 needed"
    assert str(Evidence(0.0123, 1e17)) == "evidence 0.012 of 1e+17 needed"
