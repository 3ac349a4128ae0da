"""The same users for every policy: the same page in the same round gets the same clicks."""

import numpy as np
import pytest

from saferank.click_models import CLICK_MODELS
from saferank.instances import Instance
from saferank.instances.embedded import embedded_instances
from saferank.randomness import Words, stream, word
from saferank.simulation.users import begin_page, next_user
from saferank.verbs import Items, click
from tests.reference.randomness import Xoshiro, page_stream
from tests.reference.users import click_models as literal_users

QUERY = {instance.model_name: instance for instance in embedded_instances(3, models=tuple(CLICK_MODELS))[-6:]}


def pages(chosen: list[Items], instance: Instance) -> list[list[int]]:
    """The clicks on these pages, one after the other."""
    users, page, clicks, seen = stream(5, "users"), stream(5, "users"), np.zeros(5, np.int64), []
    for shown in chosen:
        next_user(instance.model, users, page)
        click(instance.model, shown, page, clicks)
        seen.append(clicks.tolist())
    return seen


@pytest.mark.parametrize("model", CLICK_MODELS)
def test_clicks_do_not_depend_on_earlier_pages(model: str) -> None:
    """Two policies show the same page in every other round, and anything between."""
    random = np.random.default_rng(1)
    one, other = ([random.permutation(10)[:5].astype(np.uint32) for _ in range(200)] for _ in range(2))
    one[::2] = other[::2]
    seen, beside = pages(one, QUERY[model]), pages(other, QUERY[model])
    assert seen[::2] == beside[::2]
    assert seen[1::2] != beside[1::2]
    assert sum(map(sum, seen)) > 20


@pytest.mark.parametrize("model", ["pbm", "dbn"])
def test_clicks_are_those_of_the_transcription(model: str) -> None:
    """PBM draws from the users' stream itself, DBN from one stream per page."""
    random = np.random.default_rng(2)
    chosen = [random.permutation(10)[:5].astype(np.uint32) for _ in range(100)]
    fields = {name: np.asarray(value).tolist() for name, value in QUERY[model].model._asdict().items()}
    slow = getattr(literal_users, model.upper())(**fields)
    users = Xoshiro(stream(5, "users").tolist())
    expected = [slow.simulate(shown.tolist(), page_stream(users) if model == "dbn" else users) for shown in chosen]
    assert pages(chosen, QUERY[model]) == expected


def page_words(n_pages: int, n_words: int) -> "np.typing.NDArray[np.uint64]":
    """The first words of many pages."""
    users, page = stream(11, "users"), np.zeros(4, np.uint64)
    words = np.zeros((n_pages, n_words), np.uint64)
    for row in range(n_pages):
        begin_page(users, page)
        words[row] = [word(page) for _ in range(n_words)]
    return words


def chi_square(cells: "np.typing.NDArray[np.int64]", n_cells: int) -> float:
    counts = np.bincount(cells, minlength=n_cells)
    expected = len(cells) / n_cells
    return float(((counts - expected) ** 2 / expected).sum())


def test_words_of_pages_are_uniform_and_independent() -> None:
    """Pairs of numbers within a page, and of the same and shifted places of neighbouring pages, in 16 x 16 cells.

    Chi-square with 255 degrees of freedom has mean 255 and standard deviation 22.6; 380 is exceeded with probability
    below 1e-6, each of 30 tests. The seed is fixed.
    """
    top = (page_words(20_000, 6) >> np.uint64(60)).astype(np.int64)
    within = [top[:, i] * 16 + top[:, i + 1] for i in range(5)]
    across = [top[:-1, i] * 16 + top[1:, j] for i in range(5) for j in range(5)]
    assert max(chi_square(cells, 256) for cells in within + across) < 380


def test_a_page_has_its_words_whatever_was_drawn_before() -> None:
    users, page = stream(3, "users"), np.zeros(4, np.uint64)
    starts: list[Words] = []
    for draws in (0, 7, 1):
        begin_page(users, page)
        starts.append(page.copy())
        for _ in range(draws):
            word(page)
    slow = Xoshiro(stream(3, "users").tolist())
    assert [start.tolist() for start in starts] == [page_stream(slow).state for _ in range(3)]
