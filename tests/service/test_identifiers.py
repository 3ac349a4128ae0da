"""Ids carry their time and grow; catalogues are told apart; moments are read as they are written."""

import subprocess
import sys

import pytest

from saferank.service import identifiers
from saferank.service.clock import SystemClock
from saferank.service.knowledge.view import digest_of, pack_catalogue, unpack_catalogue
from saferank.service.wire.calls import milliseconds
from saferank.store.page_record import issued_at


def test_ids_begin_with_their_time_and_have_one_spelling() -> None:
    made = identifiers.new_id(1_800_000_000_123, b"0123456789")
    text = identifiers.to_text(made)
    assert issued_at(made) == 1_800_000_000_123
    assert identifiers.impression_id(text) == made
    assert made < identifiers.new_id(1_800_000_000_124, b"\0" * 10)
    for other in ("", "x", "ü", text + "A", text[:-1], text[:-1] + "B", text + "==", " " + text):
        assert identifiers.impression_id(other) is None


def test_ids_of_one_millisecond_grow() -> None:
    ids = identifiers.Ids()
    given = [ids.next(1_800_000_000_000 + number // 1000) for number in range(3000)]
    assert given == sorted(given) and len(set(given)) == 3000
    assert [issued_at(one) for one in given] == [1_800_000_000_000 + number // 1000 for number in range(3000)]


def test_ids_are_given_out_once_also_after_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], capture_output=True, check=True)
    assert len(done.stdout) == 32 and done.stdout[:16] != done.stdout[16:]


_FORKED = """
import os, sys
from saferank.service.identifiers import Ids
ids = Ids()
ids.next(1)
child = os.fork()
if child:
    os.waitpid(child, 0)
sys.stdout.buffer.write(ids.next(1))
sys.stdout.flush()
"""


def test_catalogues_are_told_apart_by_content() -> None:
    one, two = (["a", "b"], ["c"]), (["a"], ["b", "c"])
    assert digest_of(one) != digest_of(two)
    assert unpack_catalogue(pack_catalogue(one)) == one
    assert digest_of((["a", "b"], ["c"])) == digest_of(one)


@pytest.mark.parametrize("text", ["", "7", "2026-03-01", "2026-03-01T12:00:00", "2026-13-01T12:00:00Z", "x" * 500])
def test_other_texts_are_no_moments(text: str) -> None:
    with pytest.raises(ValueError):
        milliseconds(text)


def test_the_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)
