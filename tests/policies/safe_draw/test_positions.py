"""Pages of more than 60 positions are refused, wherever the number of positions is given; 60 are played."""

from typing import Any

import numpy as np
import pytest

import saferank
from saferank import Ranker, RankerError
from saferank.click_models.pbm import PBM
from saferank.errors import ArgumentError
from saferank.instances import Instance
from saferank.live.learner import Learner
from saferank.policies import policy_kind
from saferank.policies.safe_draw.draw import has_target
from saferank.verbs import new_impression

FIX = "safe-draw takes at most 60; show fewer, or take a policy without that limit, such as kl-ucb-br"


def items(number: int) -> list[str]:
    return [f"item{n}" for n in range(number)]


def test_every_place_of_a_page_is_a_bit_of_a_word_that_is_not_its_sign() -> None:
    kind = policy_kind("safe-draw")
    assert kind.most_positions == 60
    assert kind.places(500, 60) == 63


def test_the_last_place_of_the_longest_page_is_not_taken_for_a_mark_of_the_target() -> None:
    """Its bit is the one that marks targets on shorter pages, and the odds of a page with a target are others."""
    page = new_impression(60, 63)
    page.places[0], page.weight[:], page.exchanges[40] = 63, 1.0, 1 << 62 | 1 << 61
    assert not has_target(page)
    page.places[0] = 62
    assert has_target(page)


@pytest.mark.parametrize("lifetime", [None, 100])
def test_a_ranker(lifetime: int | None) -> None:
    options: Any = {"candidates": ["x", "y"], "lifetime": lifetime}
    with pytest.raises(RankerError, match=f"original has 61 positions: {FIX}"):
        Ranker("safe-draw", original=items(61), **options)
    ranker = Ranker("safe-draw", original=items(60), **options)
    page = ranker.rank()
    ranker.feedback(page, page.items[58:])
    assert len(set(page.items)) == 60


def test_a_learner_of_the_service() -> None:
    with pytest.raises(ValueError, match=f"61 positions: {FIX}"):
        Learner("safe-draw", original=items(61), candidates=["x"])


def test_the_simulator() -> None:
    model = PBM(np.linspace(0.1, 0.6, 70), np.ones(61))
    instance = Instance("large", model, "pbm", tuple(items(70)))
    options: Any = {"rounds": 5, "repetitions": 1, "jobs": 1, "progress": False}
    with pytest.raises(ArgumentError, match=f"positions: 61 positions: {FIX}"):
        saferank.simulate([instance], ["safe-draw"], positions=61, **options)
