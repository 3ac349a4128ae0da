"""Users whose coins no seed of ours reaches."""

from typing import NamedTuple

import numpy as np

from saferank.click_models import register
from saferank.click_models.shapes import PerItem, Probability
from saferank.verbs import click, expected_clicks, implements


class Mine(NamedTuple):
    attraction: PerItem
    patience: Probability


@implements(click, Mine)
def _click(model, shown, rng, clicks):
    for position in range(len(clicks)):
        clicks[position] = np.random.random() < model.attraction[shown[position]] * model.patience  # FAULT


@implements(expected_clicks, Mine)
def _expected_clicks(model, shown):
    total = 0.0
    for position in range(len(shown)):
        total += model.attraction[shown[position]] * model.patience
    return total


register("clicks-by-numpy", Mine)
