"""Trust in production's ranking: first pages differ little from it, the prior fades, and bad values are refused."""

import math

import numpy as np
import pytest

from saferank import Ranker
from saferank.live.ranker import RankerError
from saferank.policies import POLICIES, Setup, policy_kind
from saferank.policies.safe_draw.trust import Trust, faded, new_trust, prior_of, trust_with_more
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from tests.policies.at_work import AtWork

KIND = POLICIES["safe-draw"]


def first_pages(size: tuple[int, int], trust: float, pages: int = 60) -> tuple[float, float]:
    """The share of first pages that are production's own, and of those with its best item first."""
    setup = Setup(*size, decision_rule("anytime:1e-5"), trust=trust)
    same = first = 0
    for seed in range(pages):
        state = AtWork(KIND, setup)
        page = state.blank()
        state.choose(stream(seed, "first"), page)
        same += page.shown.tolist() == list(range(size[1]))
        first += page.shown[0] == 0
    return same / pages, first / pages


@pytest.mark.parametrize("size", [(10, 5), (20, 5)], ids=str)
def test_first_pages_are_production_s_more_often_the_more_it_is_trusted(size: tuple[int, int]) -> None:
    """The seeds are fixed. Without trust hardly any page is production's own."""
    none, usual, most = (first_pages(size, trust) for trust in (0.5, 0.977, 0.99))
    assert none[0] < 0.2 and 0.6 < usual[0] <= most[0]
    assert none[1] < 0.9 < usual[1]


def test_the_prior_has_the_odds_of_the_trust_and_fades_with_clicked_pages() -> None:
    known = np.array([0.5, 0.0])
    prior = prior_of(0.977, known)
    z = math.sqrt(2 * prior)
    assert 0.5 * math.erfc(-z / math.sqrt(2)) == pytest.approx(0.977)
    assert prior == pytest.approx(2.0, abs=0.01) and prior_of(0.5, known) == 0.0
    left = new_trust(2)
    assert faded(prior, left, 0, 1) == prior
    left.clicked[0] = 100
    assert faded(prior, left, 0, 1) == pytest.approx(prior / math.e)


def test_an_item_that_comes_later_has_the_whole_prior() -> None:
    left: Trust = new_trust(2)
    left.clicked[0] = 250
    more = trust_with_more(left, 3)
    assert faded(2.0, more, 0, 2) == 2.0 and faded(2.0, more, 0, 1) < 0.2


@pytest.mark.parametrize("trust", [0.4, 1.0, math.nan])
def test_trust_out_of_range_is_refused_wherever_it_is_given(trust: float) -> None:
    with pytest.raises(RankerError, match=r"expected a number from 0.5 \(none\) to 0.99"):
        Ranker("safe-draw", original=["a", "b"], trust=trust)
    with pytest.raises(ValueError, match=r"expected a number from 0\.5"):
        policy_kind(f"safe-draw:trust={trust}")


def test_trust_is_refused_by_policies_without_it_and_must_be_a_number() -> None:
    with pytest.raises(RankerError, match="kl-ucb-br has no trust in production's ranking"):
        Ranker("kl-ucb-br", original=["a", "b"], trust=0.9)
    with pytest.raises(RankerError, match="trust must be a number"):
        Ranker("safe-draw", original=["a", "b"], trust="high")  # type: ignore[arg-type]


def test_a_saved_ranker_keeps_its_trust() -> None:
    ranker = Ranker("safe-draw", original=["a", "b"], candidates=["c"], trust=0.8)
    assert Ranker.load(ranker.save())._learner.policy.trust == 0.8
    assert Ranker("safe-draw", original=["a", "b"])._learner.policy.trust == 0.977
