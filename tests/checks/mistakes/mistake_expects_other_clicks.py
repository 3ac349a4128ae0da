"""The expectation forgets that users lose patience."""

from typing import NamedTuple

from saferank.click_models import register
from saferank.click_models.shapes import PerItem, Probability
from saferank.randomness import uniform
from saferank.verbs import click, expected_clicks, implements


class Mine(NamedTuple):
    attraction: PerItem
    patience: Probability


@implements(click, Mine)
def _click(model, shown, rng, clicks):
    for position in range(len(clicks)):
        clicks[position] = uniform(rng) < model.attraction[shown[position]] * model.patience


@implements(expected_clicks, Mine)
def _expected_clicks(model, shown):
    total = 0.0
    for position in range(len(shown)):
        total += model.attraction[shown[position]]
    return total


register("expects-other-clicks", Mine)
