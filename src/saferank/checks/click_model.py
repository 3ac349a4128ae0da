"""The contract of a click model: honest 0/1 clicks, no side effects, and an expectation that its own clicks confirm."""

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import implemented, is_foreign, kernel, specialised
from saferank.checks.contract import Interpreter, blaming, called, require
from saferank.checks.state import copied, same
from saferank.click_models import click_model
from saferank.click_models.shapes import FieldError, Shape, field_shapes
from saferank.instances.embedded import MODELS, embedded_instances
from saferank.randomness import Words, shuffle_front, stream
from saferank.verbs import Ints, Items, click, expected_clicks

_PAGES = 20
_USERS = 20_000
_FEW_USERS = 2_000  # interpreted, to find what is far off before anything is compiled
_EXAMPLES: tuple[object, ...] = (  # what a field of a plug-in may look like in a file: 8 items or positions, a number
    [0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.2, 0.1], 0.6, [[0.9 / (1 + last) for last in range(row + 1)] for row in range(8)],
)  # fmt: skip
_GUARD = 7  # stands in the clicks beforehand; no click looks like it


def check_click_model(model: Any, n_positions: int = 5) -> None:
    """Raise a ``ContractError`` unless ``model`` keeps the contract of a click model on pages of ``n_positions``.

    Pages are shorter when the model has fewer items. A correct model fails with a probability below 1e-7: the
    expectation must lie within 6 standard errors of the mean of simulated users. The seeds are fixed, so a verdict
    never changes.

    ``model`` may also be the name of a click model: then it is checked with the parameters of an embedded query.

    >>> from saferank.click_models import CM
    >>> check_click_model(CM(np.array([0.5, 0.4, 0.3])), n_positions=2)
    >>> check_click_model("cm", n_positions=2)
    """
    if isinstance(model, str):
        model = _example_of(click_model(model), model)
    kind = type(model)
    with blaming(kind):
        for verb in (click, expected_clicks):
            require(
                implemented(verb, kind) is not None,
                f"{kind.__name__} does not implement {verb.__name__}(). Decorate a function with "
                f"@implements({verb.__name__}, {kind.__name__}).",
            )
        require(
            next(iter(field_shapes(kind))) == "attraction",
            f"The first field of {kind.__name__} is not attraction. Put attraction: PerItem first.",
        )
        check_probabilities(model)
    if is_foreign(kind):
        _check_interpreted(model, n_positions)
    else:
        _check_pages(model, n_positions, _Users())
    items = np.arange(len(model.attraction), dtype=np.uint32)
    for shown in (items[:n_positions], items[::-1][:n_positions].copy()):
        _check_compiled_users(model, shown)


def check_probabilities(model: Any) -> None:
    """Raise a ``ContractError`` unless every parameter of the model is a probability."""
    for name, value in zip(model._fields, model, strict=True):
        numbers = np.asarray(value, float)
        wrong = numbers[~((numbers >= 0) & (numbers <= 1))]
        require(
            wrong.size == 0,
            f"{name} of {type(model).__name__} holds {wrong[:1]}, which is no probability: give numbers from 0 to 1.",
        )


class _Users(NamedTuple):
    """The verbs of a click model: as they are compiled, or their interpreted twins."""

    click: Callable[..., None] = click
    expected_clicks: Callable[..., float] = expected_clicks


def _check_interpreted(model: Any, n_positions: int) -> None:
    kind = type(model)
    interpreter = Interpreter(kind.__module__)
    users = _Users(interpreter.twin(click), interpreter.twin(expected_clicks))
    with np.errstate(all="ignore"):  # compiled code does not warn either
        _check_pages(model, n_positions, users)
        shown = np.arange(len(model.attraction), dtype=np.uint32)[:n_positions]
        count = interpreter.twin(_count_clicks)
        totals = np.empty(_FEW_USERS, np.int64)
        _call(model, count, shown, stream(0, "few users"), np.empty(len(shown), np.int64), totals)
        _check_mean(model, shown, totals, float(_call(model, users.expected_clicks, shown)))


def _check_pages(model: Any, n_positions: int, users: _Users) -> None:
    items = np.arange(len(model.attraction), dtype=np.uint32)
    for page in range(_PAGES):
        shown = _random_page(items, n_positions, page)
        with blaming(implemented(click, type(model))):
            _check_clicks(model, shown, page, users)
        with blaming(implemented(expected_clicks, type(model))):
            _check_expectation(model, shown, users)


def _call(model: Any, verb: Callable[..., Any], *arguments: Any) -> Any:
    """What a verb returns; a failure is a ``ContractError`` with its line."""
    advice = "Compiled code checks no index: clicks and shown have one entry for each position."
    sizes = f"on {len(arguments[0])} positions"
    return called(type(model).__name__, sizes, lambda problem: advice, verb, model, *arguments)


def _example_of(kind: type, name: str) -> Any:
    """A model with the parameters of an embedded query, or with some that fit the shapes of its fields."""
    if name in MODELS:
        return embedded_instances(2, models=(name,))[0].model
    return kind(*(_example_field(kind, field, shape) for field, shape in field_shapes(kind).items()))


def _example_field(kind: type, field: str, shape: Shape) -> Any:
    for example in _EXAMPLES:
        try:
            return shape.read(example, 8)
        except FieldError:
            continue
    raise ValueError(f"there are no parameters to check {field} of {kind.__name__} with; give a model, not its name")


def _random_page(items: Items, n_positions: int, page: int) -> Items:
    order = items.copy()
    shuffle_front(stream(page, "checked page"), order, 0, n_positions, len(order))
    return order[:n_positions]


def _clicks_of_user(model: Any, shown: Items, page: int, users: _Users) -> Ints:
    """The clicks of the page's user in an array of other numbers."""
    clicks = np.full(len(shown), _GUARD, np.int64)
    _call(model, users.click, shown, stream(page, "checked user"), clicks)
    return clicks


def _check_clicks(model: Any, shown: Items, page: int, users: _Users) -> None:
    name, contents, items = type(model).__name__, copied(model), shown.copy()
    clicks = _clicks_of_user(model, shown, page, users)
    again = _clicks_of_user(model, shown, page, users)
    require(
        set(clicks.tolist()) <= {0, 1},
        f"click() of {name} must write 0 or 1 for every position, but left {clicks.tolist()}. {_GUARD} stood there "
        "before: write the positions without a click too.",
    )
    require(
        np.array_equal(clicks, again),
        f"click() of {name} gives other clicks for the same state of the generator. Draw from rng alone, and keep "
        "nothing in the model or in globals.",
    )
    require(np.array_equal(shown, items), f"click() of {name} changes the shown items. Write into clicks alone.")
    require(same(model, contents), f"click() of {name} changes the model. Its parameters are read only.")


def _check_expectation(model: Any, shown: Items, users: _Users) -> None:
    name, contents, items = type(model).__name__, copied(model), shown.copy()
    expected = _call(model, users.expected_clicks, shown)
    require(
        isinstance(expected, float | int | np.number) and bool(0 <= expected <= len(shown)),
        f"{name} expects {expected} clicks on {len(shown)} positions. Return a number from 0 to {len(shown)}.",
    )
    require(
        users.expected_clicks(model, shown) == expected,
        f"expected_clicks() of {name} differs from call to call. It must depend on model and shown alone.",
    )
    require(np.array_equal(shown, items), f"expected_clicks() of {name} changes the shown items. Read them only.")
    require(same(model, contents), f"expected_clicks() of {name} changes the model. Read it only.")


@kernel
def _count_clicks(model: Any, shown: Items, rng: Words, clicks: Ints, totals: Ints) -> None:
    """Fill ``totals`` with the number of clicks of each of many users."""
    for user in range(len(totals)):
        click(model, shown, rng, clicks)
        totals[user] = clicks.sum()


def _check_compiled_users(model: Any, shown: Items) -> None:
    totals = np.empty(_USERS, np.int64)
    count = specialised(_count_clicks, type(model))
    _call(model, count, shown, stream(0, "checked users"), np.empty(len(shown), np.int64), totals)
    _check_mean(model, shown, totals, float(_call(model, expected_clicks, shown)))


def _check_mean(model: Any, shown: Items, totals: Ints, expected: float) -> None:
    mean, error = float(totals.mean()), float(totals.std(ddof=1)) / sqrt(len(totals))
    unseen = 20 / len(totals)  # clicks this rare may not have shown up at all, with an estimated error of zero
    with blaming(implemented(expected_clicks, type(model))):
        require(
            abs(mean - expected) <= 6 * error + unseen,
            f"{type(model).__name__} expects {expected:.4f} clicks on the items {shown.tolist()}, but {len(totals)} "
            f"simulated users made {mean:.4f} on average (standard error {error:.4f}). Regret would be wrong: let "
            "expected_clicks() return the mean of the clicks that click() makes.",
        )
