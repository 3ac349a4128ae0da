"""Tables for the screen: numbers are written alike, names are never cut."""

import io

import pytest
from rich.console import Console

from saferank.cli.terminal.tables import drawn as table_for_screen
from saferank.cli.terminal.tables import timing_table
from saferank.reporting.frames import means_of
from saferank.reporting.pooling import long_table
from saferank.simulation.bench import Timing
from saferank.simulation.results import Result

VARIANT = "bubble-rank:a-reading-with-a-name-that-is-much-longer-than-a-column"


def drawn(policy: str, violations: float, width: int = 80) -> str:
    """The table of one result on a screen of this width."""
    result = Result("q", "pbm", policy, None, 5, 10, 2, [10], [42342.0], [0.0], [violations], [0.0], [0.0])
    screen = io.StringIO()
    Console(file=screen, width=width).print(table_for_screen(long_table(means_of([result]))))
    return screen.getvalue()


def test_large_numbers_are_written_alike() -> None:
    text = drawn("original", 14710.0)
    assert "42,342" in text and "14,710" in text
    assert "e+" not in text


def test_a_long_name_is_folded_and_not_cut() -> None:
    lines = drawn(VARIANT, 0.0).splitlines()
    rows = [line.removeprefix("  pbm").split() for line in lines[4:]]
    assert max(map(len, lines)) <= 80
    assert "".join(row[0] for row in rows if row) == VARIANT


@pytest.mark.parametrize("name", ["bubble-rank:all-candidates", "kl-ucb-br rule=anytime:1e-5 K=3 lifetime=none"])
def test_names_break_between_their_parts(name: str) -> None:
    lines = drawn(name, 0.0).splitlines()
    assert max(map(len, lines)) <= 80
    words = set(name.replace(":all", ": all").split())
    assert words <= {word for line in lines[4:] for word in line.split()}


def test_timings_have_names_in_lines_too() -> None:
    screen = io.StringIO()
    table = timing_table([Timing("bubble-rank:all-candidates", "pbm", 2.0, 1.0)], "title", "ns")
    Console(file=screen, width=40).print(table_for_screen(table))
    assert {"bubble-rank:", "all-candidates"} <= set(screen.getvalue().split())
