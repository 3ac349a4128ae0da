"""A daily cap on the pages of one source that count."""

from saferank.service.knowledge.arms import DAY_MS, EXPLORE, REPEAT
from saferank.service.knowledge.visits import SourceCounts
from tests.service.knowledge.visits.test_votes import START, opened, recorded


def test_pages_beyond_the_cap_are_repeats_until_the_next_day() -> None:
    fold = opened(source_daily_pages=3)
    begin = START // DAY_MS * DAY_MS + DAY_MS
    times = [begin + n for n in range(5)] + [begin + DAY_MS]
    pages = [recorded(at, b"fresh%03d" % n, ("a", "b"), 1, source=b"attacker") for n, at in enumerate(times)]
    fold.fold([*pages, recorded(times[-1] + 1, b"fresh999", ("a", "b"), 1)], times[-1] + 1)
    assert (fold.tallies[EXPLORE][0], fold.tallies[REPEAT][0]) == (5, 2)


def test_sources_are_packed_without_loss_and_bounded() -> None:
    sources = SourceCounts(2, most=3)
    admitted = [sources.admits(b"source%02d" % (n % 5), 5 * DAY_MS) for n in range(15)]
    assert admitted == [True] * 3 + [False] * 2 + [True] * 3 + [False] * 7
    twin = SourceCounts(2, sources.day, sources.packed(), most=3)
    assert twin.packed() == sources.packed()
    assert not twin.admits(b"source00", 5 * DAY_MS)
    assert twin.admits(b"source04", 6 * DAY_MS)
    assert SourceCounts(0).admits(b"source00", 0)


def test_another_limit_holds_from_then_on() -> None:
    sources = SourceCounts(1)
    assert [sources.admits(b"source00", 0) for _ in range(2)] == [True, False]
    sources.limit(2)
    assert [sources.admits(b"source00", 0) for _ in range(2)] == [True, False]
    sources.limit(0)
    assert sources.admits(b"source00", 0)
