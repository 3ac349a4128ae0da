"""The contract of a click model catches every kind of broken model, each with a sentence."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank._kernel import implements
from saferank.checks import ContractError, check_click_model
from saferank.click_models import CM
from saferank.click_models.shapes import PerItem, Probability
from saferank.randomness import Words, uniform
from saferank.verbs import Ints, Items, click, expected_clicks

ATTRACTION = np.linspace(0.2, 0.6, 8)


class LeavesGaps(NamedTuple):
    attraction: PerItem


class CountsTwice(NamedTuple):
    attraction: PerItem


class WritesOutside(NamedTuple):
    attraction: PerItem


class Remembers(NamedTuple):
    attraction: PerItem
    memory: PerItem


class Reorders(NamedTuple):
    attraction: PerItem


class ReordersExpecting(NamedTuple):
    attraction: PerItem


class Accumulates(NamedTuple):
    attraction: PerItem
    memory: PerItem


class Exaggerates(NamedTuple):
    attraction: PerItem


class SlightlyWrong(NamedTuple):
    attraction: PerItem


class Mute(NamedTuple):
    attraction: PerItem


class Headless(NamedTuple):
    mood: Probability
    attraction: PerItem


def independent_clicks(model: Any, shown: Items, rng: Words, clicks: Ints) -> None:
    for k in range(len(clicks)):
        clicks[k] = uniform(rng) < model.attraction[shown[k]]


def total_attraction(model: Any, shown: Items) -> float:
    total = 0.0
    for k in range(len(shown)):
        total += model.attraction[shown[k]]
    return total


for clicking in (ReordersExpecting, Accumulates, Exaggerates, SlightlyWrong, Headless):
    implements(click, clicking)(independent_clicks)
for expecting in (LeavesGaps, CountsTwice, WritesOutside, Remembers, Reorders, Mute, Headless):
    implements(expected_clicks, expecting)(total_attraction)


@implements(click, LeavesGaps)
def _leave_gaps(model: LeavesGaps, shown: Items, rng: Words, clicks: Ints) -> None:
    for k in range(len(clicks)):
        if uniform(rng) < model.attraction[shown[k]]:
            clicks[k] = 1


@implements(click, CountsTwice)
def _count_twice(model: CountsTwice, shown: Items, rng: Words, clicks: Ints) -> None:
    for k in range(len(clicks)):
        clicks[k] = 2 * (uniform(rng) < model.attraction[shown[k]] / 2)


@implements(click, WritesOutside)
def _write_outside(model: WritesOutside, shown: Items, rng: Words, clicks: Ints) -> None:
    clicks[:] = 0
    # Python would raise an IndexError; compiled code has no such check.
    clicks[np.int64(len(clicks))] = 0


@implements(click, Remembers)
def _remember(model: Remembers, shown: Items, rng: Words, clicks: Ints) -> None:
    for k in range(len(clicks)):
        clicks[k] = model.memory[shown[k]] < 0.5
    model.memory[shown[0]] += 0.5


@implements(click, Reorders)
def _reorder(model: Reorders, shown: Items, rng: Words, clicks: Ints) -> None:
    clicks[:] = 0
    shown[0] = shown[1]


@implements(expected_clicks, ReordersExpecting)
def _reorder_expecting(model: ReordersExpecting, shown: Items) -> float:
    shown[0] = shown[1]
    return 1.0


@implements(expected_clicks, Accumulates)
def _accumulate(model: Accumulates, shown: Items) -> float:
    model.memory[0] += 0.01
    return model.memory[0]  # type: ignore[no-any-return]


@implements(expected_clicks, Exaggerates)
def _exaggerate(model: Exaggerates, shown: Items) -> float:
    return len(shown) + 0.5


@implements(expected_clicks, SlightlyWrong)
def _slightly_wrong(model: SlightlyWrong, shown: Items) -> float:
    total = 0.0
    for k in range(len(shown)):
        total += 0.95 * model.attraction[shown[k]]
    return total


BROKEN = [
    (LeavesGaps(ATTRACTION), r"must write 0 or 1 for every position, but left \[.*7"),
    (CountsTwice(ATTRACTION), r"must write 0 or 1 for every position, but left \[.*2"),
    (Remembers(ATTRACTION, np.zeros(8)), "gives other clicks for the same state of the generator"),
    (Reorders(ATTRACTION), r"click\(\) of Reorders changes the shown items"),
    (ReordersExpecting(ATTRACTION), r"expected_clicks\(\) of ReordersExpecting changes the shown items"),
    (Accumulates(ATTRACTION, np.zeros(8)), r"expected_clicks\(\) of Accumulates differs from call to call"),
    (Exaggerates(ATTRACTION), "Exaggerates expects 5.5 clicks on 5 positions"),
    (
        SlightlyWrong(ATTRACTION),
        r"SlightlyWrong expects 1\.\d+ clicks on the items \[0, 1, 2, 3, 4\], but 20000 simulated",
    ),
    (Mute(ATTRACTION), r"Mute does not implement click\(\)"),
    (Headless(0.5, ATTRACTION), "The first field of Headless is not attraction"),
]


@pytest.mark.parametrize(("model", "sentence"), BROKEN, ids=lambda value: type(value).__name__)
def test_a_broken_model_is_caught(model: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence) as caught:
        check_click_model(model)
    assert str(caught.value).endswith(".")


def test_writing_outside_the_clicks_is_caught() -> None:
    with pytest.raises(ContractError, match="out of bounds"):
        check_click_model(WritesOutside(ATTRACTION))


def test_a_correct_model_passes_whatever_the_page_length() -> None:
    for n_positions in (1, 2, 8, 9):
        check_click_model(CM(ATTRACTION), n_positions)


def test_clicks_too_rare_to_be_seen_are_no_contradiction() -> None:
    check_click_model(CM(np.full(5, 1e-6)))


def test_a_contract_error_is_an_assertion_error() -> None:
    assert issubclass(ContractError, AssertionError)


def test_a_model_can_be_named() -> None:
    check_click_model("dbn", n_positions=3)
    with pytest.raises(ValueError, match="unknown click model 'nbd'"):
        check_click_model("nbd")
