"""Instances that are made in Python: one check for them and for files, with the same verdict in the same words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import saferank
from saferank.click_models import CLICK_MODELS, CM, PBM, UBM
from saferank.errors import ArgumentError
from saferank.instances import Instance, InstanceError, checked_instances, embedded_instances, parse_instances
from tests.instances.test_instance_files import BAD_INSTANCES, GOOD, good, same

ITEMS = ("a", "b", "c")
SMALL: dict[str, Any] = {"policies": ["original"], "positions": 2, "rounds": 20, "repetitions": 2, "progress": False}


def in_a_file(entries: list[Any]) -> str:
    """What the check of files says; nothing when it is content."""
    try:
        parse_instances(json.loads(json.dumps({"instances": entries})), "file")
    except InstanceError as problem:
        return str(problem).removeprefix("file: instances")
    return ""


def as_objects(given: Any) -> str:
    try:
        checked_instances(given)
    except InstanceError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(("entry", "field", "reason"), BAD_INSTANCES)
def test_a_dict_is_refused_in_the_words_of_a_file(entry: Any, field: str, reason: str) -> None:
    assert reason in as_objects([good(id="fine"), entry])
    assert as_objects([good(id="fine"), entry]) == in_a_file([good(id="fine"), entry])


NUMBER = st.one_of(st.floats(0, 1), st.sampled_from([-0.1, 1.6, float("nan"), float("inf"), 2.5, 1e18, -0.0]))


@st.composite
def _fields(draw: st.DrawFn, model: str) -> dict[str, Any]:
    """The fields of a click model in the right shapes with odd numbers, or one too short, too long or gone."""
    fields: dict[str, Any] = {"attraction": [0.5, 0.25, 0.0], **GOOD[model]}
    numbers = {name: json.loads(json.dumps(value)) for name, value in fields.items()}
    name = draw(st.sampled_from(list(numbers)))
    value = numbers[name]
    change = draw(st.sampled_from(["number", "shorter", "longer", "empty", "none"]))
    if change == "none":
        return numbers
    if not isinstance(value, list):
        numbers[name] = draw(NUMBER)
    elif change == "number":
        row = value[-1] if isinstance(value[-1], list) else value
        row[draw(st.integers(0, len(row) - 1))] = draw(NUMBER)
    else:
        numbers[name] = {"shorter": value[:-1], "longer": [*value, value[-1]], "empty": []}[change]
    return numbers


def arrayed(value: Any) -> Any:
    """The value as people have it in Python: lists of numbers as arrays, a triangle as a square."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        widest = max(map(len, value))
        return np.array([[*row, *[0.0] * (widest - len(row))] for row in value])
    return np.array(value, float) if isinstance(value, list) else value


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_file_dict_and_object_get_equal_verdicts(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(list(CLICK_MODELS)))
    fields = data.draw(_fields(model))
    items = data.draw(st.sampled_from([["a", "b", "c"], ["a", "b"], ["a", "b", "b"], ["a", "", "c"], []]))
    entry = {"id": data.draw(st.sampled_from(["q", ""])), "model": model, "items": items, **fields}
    entries = [entry] * data.draw(st.sampled_from([1, 1, 1, 2]))
    verdict = in_a_file(entries)
    assert as_objects(entries) == verdict
    if model == "ubm" and len(fields["examination"]) != 2:
        return  # a square array has as many columns as rows: there is no such object
    fields = {name: arrayed(value) for name, value in fields.items()}
    assert as_objects([{**each, **fields} for each in entries]) == verdict
    made = Instance(entry["id"], CLICK_MODELS[model](**fields), model, tuple(items))
    assert bool(as_objects([made] * len(entries))) == bool(verdict)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Instance("q", CM(np.full(4, 0.3)), "cm", tuple(map(str, range(20)))), "found 4 numbers, expected 20: one per"),
        ([Instance("q", CM(np.full(3, v)), "cm", ITEMS) for v in (0.1, 0.2)], "the same id and model cm; rename"),
        (Instance("q", CM(np.array([0.5, 1.6, 0.1])), "cm", ITEMS), "[0] (id 'q'): attraction: entry 1: found 1.6"),
        (Instance("q", CM(np.array([0.5, np.nan, 0.1])), "cm", ITEMS), "entry 1: found NaN"),
        (Instance("q", CM(np.full(5, 0.5)), "cm", ITEMS), "found 5 numbers, expected 3"),
        (Instance("q", CM(np.full(3, 0.5)), "bayes", ITEMS), "unknown click model 'bayes'; known ones: pbm"),
        (Instance("q", CM(np.full(3, 0.5)), "pbm", ITEMS), "expected one of PBM, which is 'pbm'"),
        (Instance("q", "pbm", "pbm", ITEMS), "model: found 'pbm', expected one of PBM"),
        (Instance("q", CM(np.full(3, 0.5)), "cm", ITEMS, examination=(1.0, 2.0)), "examination: entry 1: found 2.0"),
        (good(attraction=[0.1, 0.2]), "found 2 numbers, expected 3"),
        (7, "found 7, expected instances"),
        ([7], "[0]: found 7, expected an object"),
    ],
)
def test_simulate_plays_nothing_that_a_file_could_not_hold(given: Any, reason: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        saferank.simulate(given, **SMALL)
    assert caught.value.argument == "instances"
    assert reason in caught.value.reason


def test_dicts_lists_a_single_one_and_a_decoded_file_are_played_like_the_file(tmp_path: Path) -> None:
    entry = good("pbm")
    (tmp_path / "mine.json").write_text(json.dumps({"instances": [entry]}))
    there = saferank.simulate(tmp_path / "mine.json", **SMALL).curves
    lists = Instance("q7", PBM(entry["attraction"], entry["examination"]), "pbm", ["a", "b", "c"])  # type: ignore[arg-type]
    for form in (entry, [entry], {"instances": [entry]}, lists, (each for each in [lists])):
        assert saferank.simulate(form, **SMALL).curves == there


def test_an_instance_is_made_of_arrays_in_one_line() -> None:
    made = saferank.Instance.of("pbm", attraction=np.array([0.4, 0.1, 0.3]), examination=(1, np.float32(0.5)))
    assert (made.id, made.items) == ("query", ("item-1", "item-2", "item-3"))
    assert made.examination == (1.0, 0.5)
    square = np.array([[1.0, 0.0], [0.5, 0.75]])
    users = saferank.Instance.of("ubm", id="q", items=["a", "b"], attraction=[0.5, 0.2], examination=square)
    assert isinstance(users.model, UBM)
    assert users.model.examination.tolist() == square.tolist()
    with pytest.raises(InstanceError, match=r"attraction: is missing; add it"):
        saferank.Instance.of("cm")
    with pytest.raises(InstanceError, match=r"\(id 'query'\): attraction: found 2 numbers, expected 3"):
        saferank.Instance.of("cm", items=["a", "b", "c"], attraction=[0.1, 0.2])


def test_what_is_sound_comes_out_as_it_went_in() -> None:
    given = embedded_instances(3)
    checked = checked_instances(given)
    assert all(
        same(one, other) and one.examination == other.examination for one, other in zip(given, checked, strict=True)
    )
