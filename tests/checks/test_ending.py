"""Loops of plug-ins that never end."""

import itertools
import sys

import pytest

from saferank.checks import ContractError
from saferank.checks.ending import MOST_LINES, ending


def test_a_loop_without_an_end_is_stopped_with_its_line() -> None:
    before = sys.gettrace()
    with pytest.raises(ContractError, match="mine does not end") as caught, ending("mine"):
        for _ in itertools.count():  # a frame of this file is entered below, so that it is traced
            _loop()
    assert caught.value.place is not None and __file__ in caught.value.place
    assert sys.gettrace() is before


def _loop() -> None:
    count = 0
    while True:
        count += 1


def test_code_that_catches_every_exception_is_stopped_too() -> None:
    def stubborn() -> None:
        while True:
            try:
                _loop()
            except Exception:
                continue

    with pytest.raises(ContractError, match="does not end"), ending("mine"):
        stubborn()


def test_a_loop_with_an_end_is_left_alone() -> None:
    def short() -> int:
        return sum(number for number in range(1000))

    with ending("mine"):
        assert short() == 499_500
    assert MOST_LINES > 1_000_000
