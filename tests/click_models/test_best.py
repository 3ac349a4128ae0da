"""r* is the largest reward of all rankings, and says when it is only assumed."""

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank._kernel import implements
from saferank.click_models import CLICK_MODELS, CM, DBN, DCM, PBM
from saferank.click_models.best import _next_ranking, best_reward
from saferank.click_models.shapes import PerItem
from saferank.instances.embedded import embedded_instances
from saferank.randomness import Words
from saferank.verbs import Ints, Items, click, expected_clicks


def by_enumeration(model: Any, n_positions: int) -> float:
    rankings = permutations(range(len(model.attraction)), n_positions)
    return max(expected_clicks(model, np.array(ranking, np.uint32)) for ranking in rankings)


def shortened(model: Any, n_items: int) -> Any:
    """The model of the first few items."""
    per_item = {"attraction", "satisfaction"} & set(model._fields)
    return model._replace(**{name: getattr(model, name)[:n_items].copy() for name in per_item})


@pytest.mark.parametrize("n_positions", [1, 2, 4, 5])
@pytest.mark.parametrize("name", CLICK_MODELS)
def test_it_equals_the_maximum_over_all_rankings(name: str, n_positions: int) -> None:
    for instance in embedded_instances(4, models=(name,)):
        model = shortened(instance.model, 5)
        best = best_reward(model, n_positions)
        assert best.value == pytest.approx(by_enumeration(model, n_positions), abs=1e-12)
        assert expected_clicks(model, np.array(best.ranking, np.uint32)) == best.value
        assert len(set(best.ranking)) == n_positions
        assert not best.assumed


def test_pbm_puts_the_best_item_where_users_look_most() -> None:
    model = PBM(np.array([0.1, 0.4, 0.2, 0.3]), np.array([0.5, 1.0, 0.7, 1.0]))
    assert best_reward(model, 3).ranking == (2, 1, 3)
    assert best_reward(model, 3).value == pytest.approx(0.5 * 0.2 + 0.4 + 0.7 * 0.3)


def test_pbm_ignores_examination_of_positions_that_do_not_exist() -> None:
    assert best_reward(PBM(np.array([0.1, 0.4]), np.array([0.2, 1.0])), 1).value == pytest.approx(0.2 * 0.4)


def test_cm_takes_the_most_attractive_items() -> None:
    assert best_reward(CM(np.array([0.5, 0.1, 0.5, 0.2])), 2) == (0.75, (0, 2), False)


def test_other_models_need_not_put_the_best_item_first() -> None:
    # Nobody goes on after a click at the top, everybody further down: 0.1 + 0.9 * (0.9 + 0.2) clicks.
    best = best_reward(DCM(np.array([0.9, 0.2, 0.1]), np.array([0.0, 1.0, 0.0])), 3)
    assert best.ranking[0] == 2
    assert best.value == pytest.approx(1.09)
    assert best_reward(DBN(np.array([0.9, 0.8]), np.array([1.0, 0.0]), 1.0), 2).ranking == (1, 0)


def test_beyond_a_million_rankings_the_order_of_attraction_is_assumed() -> None:
    model = DBN(np.linspace(0.1, 0.2, 13), np.full(13, 0.5), 0.9)
    assert not best_reward(model, 5).assumed  # 154,440 rankings
    best = best_reward(model, 6)  # 1,235,520 rankings
    assert best.assumed
    assert best.ranking == (12, 11, 10, 9, 8, 7)
    assert best.value == expected_clicks(model, np.array(best.ranking, np.uint32))


@pytest.mark.parametrize("n_positions", [1, 2, 4, 5])
def test_every_ranking_is_tried_once(n_positions: int) -> None:
    order, tried = np.arange(5, dtype=np.uint32), [tuple(range(n_positions))]
    while _next_ranking(order, n_positions):
        tried.append(tuple(order[:n_positions].tolist()))
    assert tried == list(permutations(range(5), n_positions))


def test_closed_forms_are_never_assumed() -> None:
    many = np.linspace(0.1, 0.2, 50)
    assert not best_reward(PBM(many, many), 20).assumed
    assert not best_reward(CM(many), 20).assumed


@pytest.mark.parametrize("n_positions", [0, -1, 3])
def test_impossible_numbers_of_positions_are_refused(n_positions: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to 2, the number of items"):
        best_reward(CM(np.array([0.1, 0.2])), n_positions)


class LastOnly(NamedTuple):
    """A plug-in whose users read from the bottom and see one result."""

    attraction: PerItem


@implements(click, LastOnly)
def _click(model: LastOnly, shown: Items, rng: Words, clicks: Ints) -> None:
    clicks[:] = 0


@implements(expected_clicks, LastOnly)
def _expected_clicks(model: LastOnly, shown: Items) -> float:
    return model.attraction[shown[len(shown) - 1]]  # type: ignore[no-any-return]


def test_a_plug_in_model_is_enumerated() -> None:
    assert best_reward(LastOnly(np.array([0.3, 0.9, 0.1])), 2) == (0.9, (0, 1), False)
