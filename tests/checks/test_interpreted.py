"""Kernels as plain Python: the same numbers, and an error where compiled code would read beyond an array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saferank._kernel import JIT, kernel
from saferank.checks.contract import Interpreter
from saferank.click_models import CM
from saferank.randomness import below, stream
from saferank.verbs import Floats, click, expected_clicks

INTERPRETER = Interpreter(__name__)


@kernel
def entry(row: Floats, place: int) -> float:
    return float(row[place])


@kernel
def halves(n: int, row: Floats) -> float:
    """Calls itself, and a kernel with an index that may be too large."""
    return entry(row, n) if n > 5 else halves(2 * n, row)


def adding(amount: float) -> Callable[[Floats], float]:
    """A kernel with a closure, and another kernel inside of it."""

    @kernel
    def added(row: Floats) -> float:
        return entry(row, 0) + amount

    return added


def test_an_index_beyond_the_array_is_an_error_in_any_kernel_that_is_called() -> None:
    with pytest.raises(IndexError, match="index 8 is out of bounds"):
        INTERPRETER.twin(halves)(1, np.zeros(8))
    assert INTERPRETER.twin(halves)(1, np.arange(9.0)) == 8.0


def test_closures_and_verbs_are_followed() -> None:
    assert INTERPRETER.twin(adding(2.5))(np.ones(1)) == 3.5
    model, shown = CM(np.array([0.5, 0.25])), np.array([1, 0], np.uint32)
    assert INTERPRETER.twin(expected_clicks)(model, shown) == expected_clicks(model, shown)
    with pytest.raises(TypeError, match=r"click\(\) is not implemented for int"):
        INTERPRETER.twin(click)(1, shown, stream(0), np.zeros(2, np.int64))


def test_random_words_are_the_same() -> None:
    one, other = stream(3), stream(3)
    with np.errstate(over="ignore"):
        assert [INTERPRETER.twin(below)(one, 7) for _ in range(50)] == [below(other, 7) for _ in range(50)]
    assert one.tolist() == other.tolist()


def test_what_is_no_kernel_stays_itself_and_a_twin_is_its_own_twin() -> None:
    values: list[Any] = [np.zeros, len, pytest.raises]
    assert [INTERPRETER.twin(value) for value in values] == values
    twin = INTERPRETER.twin(halves)
    assert INTERPRETER.twin(twin) is twin is INTERPRETER.twin(halves)
    assert hasattr(halves, "py_func") == JIT
    assert not hasattr(twin, "py_func")
