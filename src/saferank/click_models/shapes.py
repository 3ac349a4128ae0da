"""The shape of a click model's field, declared beside its name; it reads, writes and measures the field in files.

    class PBM(NamedTuple):
        attraction: PerItem  # one probability per item
        examination: PerPosition  # one probability per position

A plug-in model that annotates its fields so gets the whole validation of instance files for nothing. Every value is a
probability. What is wrong with a value is a ``FieldError``; the reader of the file adds where it stands.
"""

import json
from abc import ABC, abstractmethod
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np

from saferank.verbs import Floats


class FieldError(ValueError):
    """What was found in a field, and what is expected there."""


class Shape(ABC):
    """How a field looks in an instance file, and how many positions it covers."""

    @abstractmethod
    def read(self, value: object, n_items: int) -> Any:
        """The field of the model from its JSON value."""

    def write(self, stored: Any) -> object:
        """The JSON value of the field; ``read`` gives the same field back to the last digit."""
        return plain(stored)

    def positions(self, stored: Any) -> int | None:
        """How many positions the field covers, or None when it is not about positions."""
        return None


class _PerItem(Shape):
    def read(self, value: object, n_items: int) -> Floats:
        numbers = _probabilities(value)
        if len(numbers) != n_items:
            raise FieldError(f"found {_count(len(numbers), 'number')}, expected {n_items}: one per item")
        return numbers


class _PerPosition(Shape):
    def read(self, value: object, n_items: int) -> Floats:
        numbers = _probabilities(value)
        if len(numbers) == 0:
            raise FieldError("found an empty list, expected one number per position")
        return numbers

    def positions(self, stored: Any) -> int | None:
        return len(stored)


class _Triangle(Shape):
    def read(self, value: object, n_items: int) -> Floats:
        rows = _list(value)
        if not rows:
            raise FieldError("found an empty list, expected one row per position")
        square = np.zeros((len(rows), len(rows)))
        for r, row in enumerate(rows):
            square[r, : r + 1] = _triangle_row(row, r)
        return square

    def write(self, stored: Any) -> object:
        square = isinstance(stored, np.ndarray) and stored.ndim == 2
        return [row[: r + 1].tolist() for r, row in enumerate(stored)] if square else plain(stored)

    def positions(self, stored: Any) -> int | None:
        return len(stored)


class _One(Shape):
    def read(self, value: object, n_items: int) -> float:
        return _probability(value)


PerItem = Annotated[Floats, _PerItem()]
"""One probability per item."""
PerPosition = Annotated[Floats, _PerPosition()]
"""One probability per position, from the top; a file may cover more positions than are shown."""
Triangle = Annotated[Floats, _Triangle()]
"""A square array of which row r has r + 1 probabilities, for position r + 1; zeros elsewhere."""
Probability = Annotated[float, _One()]
"""A single probability."""


def field_shapes(kind: type) -> dict[str, Shape]:
    """The shape of every field of a click model class, in order.

    >>> from saferank.click_models.dbn import DBN
    >>> list(field_shapes(DBN))
    ['attraction', 'satisfaction', 'continuation']
    """
    hints = get_type_hints(kind, include_extras=True)
    return {name: _shape_of(kind, name, hint) for name, hint in hints.items()}


def found(value: object) -> str:
    """A value much as it stands in JSON, cut to fit into a message of one line."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= 40 else text[:37] + "..."


def plain(value: object) -> object:
    """A value made in Python as JSON has it: arrays, columns and tuples as lists, numbers of numpy as numbers.

    >>> plain((np.float32(0.5), np.array([1, 2])))
    [0.5, [1, 2]]
    """
    listed = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if listed is not None:
        return listed()
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def _shape_of(kind: type, name: str, hint: object) -> Shape:
    for mark in get_args(hint):
        if isinstance(mark, Shape):
            return mark
    raise TypeError(
        f"field {name!r} of click model {kind.__name__} has no shape: "
        "annotate it as PerItem, PerPosition, Triangle or Probability"
    )


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError(f"found {found(value)}, expected a list")
    return value


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"found {found(value)}, expected a number from 0 to 1")
    if not 0 <= value <= 1:  # NaN fails as well
        raise FieldError(f"found {found(value)}, expected a probability from 0 to 1")
    return float(value)


def _probabilities(value: object) -> Floats:
    numbers = np.empty(len(_list(value)))
    for place, entry in enumerate(_list(value)):
        try:
            numbers[place] = _probability(entry)
        except FieldError as problem:
            raise FieldError(f"entry {place}: {problem}") from None
    return numbers


def _triangle_row(row: object, r: int) -> Floats:
    try:
        numbers = _probabilities(row)
    except FieldError as problem:
        raise FieldError(f"row {r}: {problem}") from None
    if len(numbers) != r + 1:
        raise FieldError(
            f"row {r}: found {_count(len(numbers), 'number')}, expected {r + 1}: "
            "one for no click above, then one per position of the last click above"
        )
    return numbers


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
