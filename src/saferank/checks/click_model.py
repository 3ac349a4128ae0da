"""The contract of a click model: honest 0/1 clicks, no side effects, and an expectation that its own clicks confirm."""

from math import sqrt
from typing import Any

import numpy as np

from saferank._kernel import implemented, kernel, specialised
from saferank.checks.contract import require
from saferank.click_models.shapes import field_shapes
from saferank.randomness import Words, shuffle_front, stream
from saferank.verbs import Floats, Ints, Items, click, expected_clicks

_PAGES = 20
_USERS = 20_000
_GUARD = 7  # stands in and around the clicks beforehand; no click looks like it


def check_click_model(model: Any, n_positions: int = 5) -> None:
    """Raise a ``ContractError`` unless ``model`` keeps the contract of a click model on pages of ``n_positions``.

    Pages are shorter when the model has fewer items. A correct model fails with a probability below 1e-7: the
    expectation must lie within 6 standard errors of the mean of simulated users. The seeds are fixed, so a verdict
    never changes.

    >>> from saferank.click_models import CM
    >>> check_click_model(CM(np.array([0.5, 0.4, 0.3])), n_positions=2)
    """
    name = type(model).__name__
    for verb in (click, expected_clicks):
        require(implemented(verb, type(model)) is not None, f"{name} does not implement {verb.__name__}().")
    require(next(iter(field_shapes(type(model)))) == "attraction", f"The first field of {name} is not attraction.")
    items = np.arange(len(model.attraction), dtype=np.uint32)
    for page in range(_PAGES):
        shown = _random_page(items, n_positions, page)
        _check_clicks(model, shown, page)
        _check_expectation(model, shown)
    _check_simulation(model, items[:n_positions])
    _check_simulation(model, items[::-1][:n_positions].copy())


def _random_page(items: Items, n_positions: int, page: int) -> Items:
    order = items.copy()
    shuffle_front(stream(page, "checked page"), order, 0, n_positions, len(order))
    return order[:n_positions]


def _contents(model: Any) -> list[Floats]:
    return [np.array(field) for field in model]


def _unchanged(model: Any, before: list[Floats]) -> bool:
    return all(np.array_equal(field, old) for field, old in zip(model, before, strict=True))


def _clicks_of_user(model: Any, shown: Items, page: int) -> Ints:
    """The clicks of the page's user in an array of other numbers; those on each side must survive."""
    guarded = np.full(len(shown) + 2, _GUARD, np.int64)
    clicks = guarded[1:-1]
    click(model, shown, stream(page, "checked user"), clicks)
    require(guarded[0] == guarded[-1] == _GUARD, f"click() of {type(model).__name__} writes outside the clicks.")
    return clicks


def _check_clicks(model: Any, shown: Items, page: int) -> None:
    name, contents, items = type(model).__name__, _contents(model), shown.copy()
    clicks = _clicks_of_user(model, shown, page)
    again = _clicks_of_user(model, shown, page)
    binary = set(clicks.tolist()) <= {0, 1}
    require(binary, f"click() of {name} must write 0 or 1 for every position, but left {clicks.tolist()}.")
    require(np.array_equal(clicks, again), f"click() of {name} gives other clicks for the same state of the generator.")
    require(np.array_equal(shown, items), f"click() of {name} changes the shown items.")
    require(_unchanged(model, contents), f"click() of {name} changes the model.")


def _check_expectation(model: Any, shown: Items) -> None:
    name, contents, items = type(model).__name__, _contents(model), shown.copy()
    expected = expected_clicks(model, shown)
    require(0 <= expected <= len(shown), f"{name} expects {expected} clicks on {len(shown)} positions.")
    require(expected_clicks(model, shown) == expected, f"expected_clicks() of {name} differs from call to call.")
    require(np.array_equal(shown, items), f"expected_clicks() of {name} changes the shown items.")
    require(_unchanged(model, contents), f"expected_clicks() of {name} changes the model.")


@kernel
def _count_clicks(model: Any, shown: Items, rng: Words, clicks: Ints, totals: Ints) -> None:
    """Fill ``totals`` with the number of clicks of each of many users."""
    for user in range(len(totals)):
        click(model, shown, rng, clicks)
        totals[user] = clicks.sum()


def _check_simulation(model: Any, shown: Items) -> None:
    totals = np.empty(_USERS, np.int64)
    count = specialised(_count_clicks, type(model))
    count(model, shown, stream(0, "checked users"), np.empty(len(shown), np.int64), totals)
    expected, mean = expected_clicks(model, shown), float(totals.mean())
    error = float(totals.std(ddof=1)) / sqrt(_USERS)
    unseen = 20 / _USERS  # clicks this rare may not have shown up at all, with an estimated error of zero
    require(
        abs(mean - expected) <= 6 * error + unseen,
        f"{type(model).__name__} expects {expected:.4f} clicks on the items {shown.tolist()}, "
        f"but {_USERS} simulated users made {mean:.4f} on average (standard error {error:.4f}).",
    )
