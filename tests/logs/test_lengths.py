"""Lengths of pages and catalogues."""

import pytest

from saferank.errors import ArgumentError
from saferank.logs.records import LONGEST_PAGE, check_lengths


def test_lengths_that_pages_and_instances_can_have() -> None:
    for page_length, items in ((None, None), (1, 1), (LONGEST_PAGE, 2 * LONGEST_PAGE), (None, 3)):
        check_lengths(page_length, items)


@pytest.mark.parametrize(
    ("page_length", "items", "argument"),
    [(0, None, "page_length"), (LONGEST_PAGE + 1, None, "page_length"), (None, 0, "items"), (10, 9, "items")],
)
def test_lengths_that_they_cannot_have(page_length: int | None, items: int | None, argument: str) -> None:
    with pytest.raises(ArgumentError) as problem:
        check_lengths(page_length, items)
    assert problem.value.argument == argument
