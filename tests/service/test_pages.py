"""Packed pages come back as they were; ids carry their time."""

import pytest

from saferank.service import identifiers
from saferank.service.catalogues import pack_catalogue, unpack_catalogue
from saferank.service.clock import milliseconds, moment, steady_clock
from saferank.service.pages import Facts, pack, unpack

FACTS = Facts(
    arm=0, counted=True, recovered=False, round=12, leader_version=3, window_ms=1_800_000, exchanged=5, n_shown=3,
    numbers=(4, 0, 65_535, 9), group_ends=(1, 3, 4), challenger=3, session=b"12345678", coins=b"c" * 32,
    request_id="request ü", names=(),
)  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        FACTS._replace(numbers=(4, 70_000, 1), challenger=None, session=b"", request_id=None),
        FACTS._replace(
            arm=1, counted=False, recovered=True, numbers=(), group_ends=(), challenger=None, names=("a", "ö")
        ),
        FACTS._replace(request_id=None, names=("only", "names")),
    ],
)
def test_pages_are_packed_without_loss(facts: Facts) -> None:
    assert unpack(pack(facts)) == facts


def test_a_page_is_small() -> None:
    """A million pages are to stay in about 200 MB with their index and clicks."""
    ten = FACTS._replace(numbers=tuple(range(11)), group_ends=(1, 3, 5, 7, 9, 11), n_shown=10, request_id=None)
    assert len(pack(ten)) < 110


def test_a_page_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown format 9"):
        unpack(b"\x09" + pack(FACTS)[1:])


def test_ids_begin_with_their_time_and_have_one_spelling() -> None:
    made = identifiers.new_id(1_800_000_000_123, b"0123456789")
    text = identifiers.to_text(made)
    assert identifiers.issued_at(made) == 1_800_000_000_123
    assert identifiers.impression_id(text) == made
    assert made < identifiers.new_id(1_800_000_000_124, b"\0" * 10)
    for other in ("", "x", "ü", text + "A", text[:-1], text[:-1] + "B", text + "==", " " + text):
        assert identifiers.impression_id(other) is None


def test_catalogues_are_told_apart_by_content() -> None:
    one, two = pack_catalogue(["a", "b"], ["c"]), pack_catalogue(["a"], ["b", "c"])
    assert one[0] != two[0]
    assert unpack_catalogue(one[1]) == (["a", "b"], ["c"])
    assert pack_catalogue(["a", "b"], ["c"]) == one


@pytest.mark.parametrize("text", ["", "7", "2026-03-01", "2026-03-01T12:00:00", "2026-13-01T12:00:00Z", "x" * 500])
def test_other_texts_are_no_moments(text: str) -> None:
    with pytest.raises(ValueError):
        milliseconds(text)


def test_moments_are_read_as_they_are_written() -> None:
    for at in (0, 1_772_366_400_007, 4_000_000_000_999):
        assert milliseconds(moment(at)) == at
    clock = steady_clock()
    assert clock() - clock() + 1000 >= 0
