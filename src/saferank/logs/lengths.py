"""How long pages and catalogues of a log may be."""

from saferank.errors import ArgumentError, whole_number
from saferank.logs.errors import LONGEST_PAGE


def check_lengths(page_length: int | None, items: int | None) -> None:
    """An ``ArgumentError`` for lengths that no page and no instance can have."""
    if page_length is not None:
        whole_number(page_length, "page_length", at_most=LONGEST_PAGE)
    if items is not None:
        whole_number(items, "items")
        if page_length is not None and items < page_length:
            raise ArgumentError("items", f"found {items}, expected at least {page_length}, the page length")
