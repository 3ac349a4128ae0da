"""Kernels as other kernels call them. When one of these tests fails after an upgrade, numba's internals have changed:
``src/saferank/_inner_code.py`` is the one file to look at.
"""

import gc
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from saferank._kernel import JIT, CompilationError, implements, kernel, seldom, verb
from saferank.verbs import Floats

pytestmark = pytest.mark.skipif(not JIT, reason="interpreted: there is no compiled code")


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: Floats


@verb
def area(shape: Any, scale: float) -> float:
    """Of a shape."""
    raise NotImplementedError


@implements(area, Square)
def _square(shape: Square, scale: float) -> float:
    return _product(shape.side, shape.side) * scale


@implements(area, Circle)
def _circle(shape: Circle, scale: float) -> float:
    return _product(shape.radius[0], shape.radius[0]) * 3.0 * scale


@kernel
def _product(one: float, other: float = 2.0) -> float:
    return one * other


@kernel
def _twice(number: float) -> float:
    return _product(number)


@seldom
def _sum_of(numbers: Floats) -> float:
    total = 0.0
    for number in numbers:
        total += _twice(number) + _product(other=number, one=1.0)
    return total


@kernel
def _everything(numbers: Floats, square: Square, circle: Circle) -> float:
    small = _product(1) + _product(2) + _product(3)
    return _sum_of(numbers) + area(square, 2.0) + area(circle, 1.0) + _twice(small)


def inner_of(function: Any) -> dict[Any, Any]:
    """By signature: what was compiled of a kernel for compiled callers."""
    found: dict[Any, Any] = function.inner.overloads
    return found


NUMBERS, SQUARE, CIRCLE = np.array([1.0, 2.0]), Square(3.0), Circle(np.array([2.0]))


def test_kernels_call_kernels_as_python_would() -> None:
    plain = 9.0 + 18.0 + 12.0 + 24.0
    assert _everything(NUMBERS, SQUARE, CIRCLE) == plain
    assert _twice(1.5) == 3.0, "and Python calls the ones that kernels call"


def test_what_only_kernels_call_is_neither_wrapped_nor_translated() -> None:
    """The time of a first run. Numba would finish each of them, and optimise it again in every caller."""
    _everything(NUMBERS, SQUARE, CIRCLE)
    assert not vars(_sum_of)["overloads"], "Python has not called it"
    (compiled,) = inner_of(_sum_of).values()
    assert not compiled.library._finalized
    assert "cpython" not in str(compiled.library._final_module)


def test_a_number_in_a_call_makes_no_other_code() -> None:
    _everything(NUMBERS, SQUARE, CIRCLE)
    kinds = [[str(kind) for kind in signature] for signature in _product.inner.overloads]  # type: ignore[attr-defined]
    assert sorted(kinds) == [
        ["float64", "float64"],
        ["float64", "omitted(default=2.0)"],
        ["int64", "omitted(default=2.0)"],
    ]


def test_a_function_compiled_by_numba_itself_may_call_kernels_and_verbs() -> None:
    def foreign(numbers: Floats, square: Square) -> float:
        return _sum_of(numbers) + area(square, 1.0)

    compiled: Any = numba.njit
    assert compiled(foreign)(NUMBERS, SQUARE) == 18.0


def test_garbage_is_collected_as_usual_after_a_compilation() -> None:
    """It is rarely collected while numba works; also when that fails."""

    @kernel
    def collected_at(number: float) -> float:
        return _product(number)

    @kernel
    def not_compiled(number: float) -> float:
        return number.nothing  # type: ignore[attr-defined, no-any-return]

    usual = gc.get_threshold()
    assert collected_at(1.0) == 2.0 and gc.get_threshold() == usual
    with pytest.raises(CompilationError):
        not_compiled(1.0)
    assert gc.get_threshold() == usual


def test_a_verb_without_a_case_is_named() -> None:
    class Line(NamedTuple):
        length: float

    @kernel
    def area_of_a_line(line: Line) -> float:
        return area(line, 1.0)

    with pytest.raises(CompilationError, match=r"No implementation of verb area\(\) for Line"):
        area_of_a_line(Line(1.0))
