"""The two special queries, on planted instances."""

import numpy as np
import pytest

from saferank.click_models import CM, PBM
from saferank.errors import ArgumentError
from saferank.instances import Instance
from saferank.reproduction.parts import special_queries

OPTIMAL, REVERSED, NEARLY = [0.6, 0.5, 0.4, 0.3], [0.3, 0.4, 0.5, 0.6], [0.5, 0.6, 0.4, 0.3]
NONE = [0.1, 0.2, 0.5, 0.4]


def queries(**attractions: list[list[float]]) -> list[Instance]:
    """Queries by name, each with its attraction under PBM and CM, of four items."""
    items = ("a", "b", "c", "d")
    return [
        Instance(name, model, model_name, items)
        for name, (pbm, cm) in attractions.items()
        for model_name, model in (("pbm", PBM(np.array(pbm), np.array([1.0, 0.5]))), ("cm", CM(np.array(cm))))
    ]


def test_the_planted_ones_are_found() -> None:
    found = special_queries(queries(a=[NEARLY, NEARLY], b=[NONE, REVERSED], c=[OPTIMAL, OPTIMAL]), 2)
    assert (found.optimal.id, found.none_of_best.id) == ("c", "b")
    assert found.facts() == {
        "optimal": {"instance": "c", "wrong_pairs": {"pbm": 0, "cm": 0}},
        "none_of_best": {"instance": "b", "best_missing": {"pbm": 2, "cm": 2}},
    }


def test_of_equals_the_most_frequent_is_taken() -> None:
    found = special_queries(
        queries(a=[OPTIMAL, OPTIMAL], b=[OPTIMAL, OPTIMAL], c=[REVERSED, REVERSED], d=[NONE, NONE]), 2
    )
    assert (found.optimal.id, found.none_of_best.id) == ("a", "c")


def test_it_must_be_optimal_under_every_model_even_if_another_is_nearly() -> None:
    found = special_queries(queries(a=[OPTIMAL, NEARLY], b=[OPTIMAL, OPTIMAL]), 2)
    assert found.optimal.id == "b"


def test_without_an_optimal_one_the_fewest_wrong_pairs_are_taken_and_told() -> None:
    found = special_queries(queries(a=[REVERSED, REVERSED], b=[NEARLY, OPTIMAL], c=[NEARLY, NEARLY]), 2)
    assert found.optimal.id == "b"
    assert found.optimal.wrong_pairs == {"pbm": 1, "cm": 0}


def test_without_one_that_lacks_all_the_best_the_one_that_lacks_most_is_taken_and_told() -> None:
    half = [0.6, 0.1, 0.5, 0.2]
    found = special_queries(queries(a=[OPTIMAL, OPTIMAL], b=[REVERSED, OPTIMAL], c=[half, half]), 2)
    assert found.none_of_best.id == "c"
    assert found.none_of_best.best_missing == {"pbm": 1, "cm": 1}


def test_an_item_as_good_as_the_last_of_the_best_is_not_missing() -> None:
    tied = [0.6, 0.4, 0.4, 0.1]
    found = special_queries(queries(a=[OPTIMAL, OPTIMAL], b=[tied, tied]), 2)
    assert found.none_of_best.best_missing == {"pbm": 0, "cm": 0}


def test_either_may_be_told() -> None:
    given = queries(a=[NEARLY, NEARLY], b=[NONE, REVERSED], c=[OPTIMAL, OPTIMAL])
    found = special_queries(given, 2, optimal="a", none_of_best="c")
    assert (found.optimal.id, found.none_of_best.id) == ("a", "c")
    assert found.optimal.wrong_pairs == {"pbm": 1, "cm": 1}  # told or not, how near it comes is said
    assert special_queries(given, 2, none_of_best="a").optimal.id == "c"
    with pytest.raises(ArgumentError, match=r"optimal: no query 'z' among the 3 that are played; there are 'a', 'b'"):
        special_queries(given, 2, optimal="z")


@pytest.mark.parametrize("attraction", [OPTIMAL, NONE])
def test_a_single_query_has_to_be_both(attraction: list[float]) -> None:
    found = special_queries(queries(a=[attraction, attraction]), 2)
    assert (found.optimal.id, found.none_of_best.id) == ("a", "a")
