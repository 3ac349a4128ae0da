"""What is in a log: counts of everything that was read, and of everything that was not."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BadLines:
    """Lines (rows of a Parquet file) that were left out for the same reason."""

    kind: str
    count: int
    first: tuple[int, ...]  # numbers of the first few, from 1
    text: str  # how the very first one begins

    def __str__(self) -> str:
        lines = ", ".join(map(str, self.first)) + (", ..." if self.count > len(self.first) else "")
        return f"{self.kind}: {self.count:,} (line {lines})"


@dataclass(frozen=True)
class LogSummary:
    """A whole log in numbers. Pages, queries and clicks are those of Q records; T records have counts of their own."""

    source: str
    format: str
    lines: int
    sessions: int | None  # None where a format does not tell
    pages: int
    test_pages: int
    queries: int
    clicks: int  # clicked items; several clicks on the same item of a page are one
    shown_by_position: tuple[int, ...]  # pages that are at least so long
    clicks_by_position: tuple[int, ...]
    pages_without_click: int
    stray_clicks: int  # on items that their page did not show
    test_clicks: int  # on pages of T records
    bad_lines: tuple[BadLines, ...]
    warnings: tuple[str, ...] = ()

    @property
    def abandonment(self) -> float:
        """The share of pages without a click."""
        return self.pages_without_click / self.pages

    @property
    def bad(self) -> int:
        """How many lines were left out."""
        return sum(bad.count for bad in self.bad_lines)
