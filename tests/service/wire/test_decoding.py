"""Strict JSON: the same values as the standard library for good texts, sentences for bad ones."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.service.wire.calls import FeedbackBatch, FeedbackCall, decoded
from saferank.service.wire.calls import values as loads
from saferank.service.wire.problems import Problem

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=30,
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(values, st.booleans())
def test_good_texts_mean_what_they_always_mean(value: Any, ascii_only: bool) -> None:
    assert loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_problem(body: bytes) -> None:
    try:
        loads(body)
    except Problem as problem:
        assert problem.status == 400


@pytest.mark.parametrize(
    ("body", "saying"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', "key 'a' is there twice"),
        (b'{"x": NaN}', "found NaN"),
        (b'{"x": [1e400]}', "out of range"),
        (b'{"x": -' + b"1" * 5000 + b"}", "out of range"),
        (b"\xff", "not UTF-8 (byte 0)"),
        (b'{"x": 1', "line 1, column 8"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"x": ["a", "\\udc00"]}', "surrogate pair (byte"),
        (b'{"\\udc00": 1}', "surrogate pair (byte"),
    ],
)
def test_bad_texts_are_refused_in_a_sentence(body: bytes, saying: str) -> None:
    with pytest.raises(Problem) as caught:
        loads(body)
    assert saying in caught.value.detail


def test_whole_pairs_of_surrogates_are_characters() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize("bad", [False, True])
def test_a_long_key_over_many_entries_costs_no_memory(bad: bool) -> None:
    """Where an entry is, is written down when there is something wrong with it, and not for all of them."""
    entries = ",".join(["1"] * 15_000 + ([r'"\udc00"'] if bad else []))
    body = (r'{"\u0061' + "k" * 30_000 + f'": [{entries}]}}').encode()
    tracemalloc.start()
    try:
        if bad:
            with pytest.raises(Problem, match="surrogate pair"):
                loads(body)
        else:
            loads(body)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"token": "t", "clicks": ["a"], "clicks": ["b"]}', 400),
        (b'{"token": "t", "clicks": [], "\\u0063licks": []}', 400),
        (b'{"batch": [{"token": "t", "clicks": []}, {"token": "t", "token": "u", "clicks": []}]}', 400),
        (b'{"token": "t:u", "clicks": ["a:b"], "shown": null}', 200),
        (b'{"batch": [{"token": "t", "clicks": [], "event_id": null}]}', 200),
    ],
)
def test_a_key_that_is_there_twice_is_found_and_colons_elsewhere_do_no_harm(body: bytes, status: int) -> None:
    kind: Any = FeedbackBatch if b"batch" in body else FeedbackCall
    if status == 200:
        assert decoded(body, kind) == msgspec.json.decode(body, type=kind)
    else:
        with pytest.raises(Problem, match="twice"):
            decoded(body, kind)
