"""Instance files: what is read comes back exactly, and whatever is wrong is said in one line that tells where."""

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank._kernel import implements
from saferank.click_models import CLICK_MODELS, register
from saferank.click_models.shapes import PerItem, PerPosition, Probability
from saferank.instances import (
    Instance,
    InstanceError,
    check_positions,
    load_instances,
    parse_instances,
    save_instances,
)
from saferank.randomness import Words
from saferank.verbs import Ints, Items, click, expected_clicks

GOOD: dict[str, dict[str, Any]] = {
    "pbm": {"examination": [1, 0.5]},
    "cm": {},
    "dcm": {"continuation": [0.5, 0.25]},
    "dbn": {"satisfaction": [0.1, 0.2, 0.3], "continuation": 0.9},
    "ubm": {"examination": [[1.0], [0.5, 0.75]]},
    "ccm": {
        "continuation_no_click": 1.0,
        "continuation_click_nonrelevant": 0.5,
        "continuation_click_relevant": 0.25,
    },
}


def good(model: str = "pbm", **changes: Any) -> dict[str, Any]:
    """A valid instance with some fields replaced."""
    base = {"id": "q7", "model": model, "items": ["a", "b", "c"], "attraction": [0.1, 1 / 3, 0]}
    return {**base, **deepcopy(GOOD[model]), **changes}


def without(field: str, model: str = "pbm") -> dict[str, Any]:
    return {key: value for key, value in good(model).items() if key != field}


def message_of(path: Path) -> str:
    with pytest.raises(InstanceError) as caught:
        load_instances(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    return message


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "queries.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def same(one: Instance, other: Instance) -> bool:
    named = (one.id, one.model_name, one.items, one.about) == (other.id, other.model_name, other.items, other.about)
    fields = zip(one.model, other.model, strict=True)
    return named and type(one.model) is type(other.model) and all(np.array_equal(a, b) for a, b in fields)


def test_every_click_model_has_an_example_here() -> None:
    assert set(GOOD) == set(CLICK_MODELS)


@pytest.mark.parametrize("model", GOOD)
def test_a_valid_instance_is_read(model: str) -> None:
    (instance,) = parse_instances({"about": "a test", "instances": [good(model, about="one")]}, "here")
    assert (instance.id, instance.model_name, instance.items) == ("q7", model, ("a", "b", "c"))
    assert instance.about == "one"
    assert instance.model.attraction.tolist() == [0.1, 1 / 3, 0]
    assert instance.model.attraction.dtype == np.float64
    assert type(instance.model) is CLICK_MODELS[model]


def test_numbers_stay_floats_and_triangles_become_squares() -> None:
    dbn, ubm = parse_instances({"instances": [good("dbn", continuation=1), good("ubm")]}, "here")
    assert type(dbn.model.continuation) is float
    assert ubm.model.examination.tolist() == [[1.0, 0.0], [0.5, 0.75]]


def test_saving_and_loading_gives_the_same_to_the_last_digit(tmp_path: Path) -> None:
    made = parse_instances({"instances": [good(m, id=f"Ж\n{m}", about="ü") for m in GOOD]}, "here")
    path = tmp_path / "saved.json"
    save_instances(path, made, about="two\nlines")
    again = load_instances(path)
    assert len(again) == len(made)
    assert all(same(a, b) for a, b in zip(made, again, strict=True))
    assert json.loads(path.read_text(encoding="utf-8"))["about"] == "two\nlines"


def test_saving_writes_the_same_bytes_again(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    save_instances(one, parse_instances({"instances": [good(m) for m in GOOD]}, "here"))
    save_instances(other, load_instances(one))
    assert one.read_bytes() == other.read_bytes()


def test_a_failed_save_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved.json"
    instances = parse_instances({"instances": [good()]}, "here")
    save_instances(path, instances)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_instances(path, instances, about="new")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_could_not_be_read_back_is_not_saved(tmp_path: Path) -> None:
    (instance,) = parse_instances({"instances": [good()]}, "here")
    instance.model.attraction[1] = np.nan
    with pytest.raises(InstanceError, match="attraction"):
        save_instances(tmp_path / "bad.json", [instance])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        ("attraction = 1", "not JSON"),
        (json.dumps({"instances": [good()]})[:-9], "cut off"),
        ('{"instances": [', "cut off"),
        ('{"instances": [{"attraction": [NaN]}]}', "NaN"),
        ('{"instances": [{"attraction": [-Infinity]}]}', "-Infinity"),
        ("[" * 100_000, "not JSON"),
        ([], "expected an object"),
        (7, "expected an object"),
        ({}, "instances: is missing"),
        ({"instances": {}}, "instances: found {}"),
        ({"instances": []}, "instances: found []"),
        ({"instances": [good()], "version": 2}, "version: unknown key"),
        ({"instances": [good()], "about": 3}, "about: found 3"),
        ('{"instances": [], "instances": []}', "instances: the key is there twice"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: object, reason: str) -> None:
    assert reason in message_of(written(tmp_path, content))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "No such file" in message_of(tmp_path / "nowhere.json")
    assert "directory" in message_of(tmp_path)


def test_a_byte_order_mark_is_welcome(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + json.dumps({"instances": [good()]}).encode())
    assert load_instances(path)[0].id == "q7"


HUGE = "1" * 5000

BAD_INSTANCES: list[tuple[object, str, str]] = [
    (without("id"), "id", "missing"),
    (good(id=7), "id", "found 7"),
    (good(id=""), "id", "found ''"),
    (without("model"), "model", "missing"),
    ({**good(), "model": "sdbn"}, "model", "known ones: pbm, cm, dcm, dbn"),
    ({**good(), "model": ["pbm"]}, "model", "string"),
    (without("items"), "items", "missing"),
    (good(items="abc"), "items", "list"),
    (good(items=[]), "items", "list"),
    (good(items=["a", "b", "a"]), "items", "entries 0 and 2 are both 'a'"),
    (good(items=["a", "", "c"]), "items", "entry 1: found ''"),
    (good(items=["a", 2, "c"]), "items", "entry 1: found 2"),
    (good(about=["x"]), "about", "string"),
    (without("attraction"), "attraction", "missing"),
    (good(attraction=0.5), "attraction", "found 0.5, expected a list"),
    (good(attraction=[0.1, 0.2]), "attraction", "found 2 numbers, expected 3: one per item"),
    (good(attraction=[0.1, 0.2, 0.3, 0.4]), "attraction", "found 4 numbers"),
    (good(attraction=[0.1, True, 0.3]), "attraction", "entry 1: found true"),
    (good(attraction=[0.1, None, 0.3]), "attraction", "entry 1: found null"),
    (good(attraction=[0.1, "0.2", 0.3]), "attraction", "entry 1: found '0.2'"),
    (good(attraction=[0.1, [0.2], 0.3]), "attraction", "entry 1: found [0.2]"),
    (good(attraction=[0.1, -0.2, 0.3]), "attraction", "entry 1: found -0.2"),
    (good(attraction=[0.1, 1.5, 0.3]), "attraction", "entry 1: found 1.5"),
    (good(attraction=[0.1, 10**18, 0.3]), "attraction", "entry 1: found 1000000000000000000"),
    (good(extra=1), "extra", "unknown key"),
    (good("cm", examination=[1, 1]), "examination", "unknown key"),
    ({**good(), "two\nlines": 1}, "'two\\nlines'", "unknown key"),
    (without("examination"), "examination", "missing"),
    (good(examination=[]), "examination", "empty"),
    (good(examination=0.5), "examination", "list"),
    (without("continuation", "dcm"), "continuation", "missing"),
    (good("dcm", continuation=0.5), "continuation", "list"),
    (good("dcm", continuation=[0.5, 2]), "continuation", "entry 1: found 2"),
    (without("satisfaction", "dbn"), "satisfaction", "missing"),
    (good("dbn", satisfaction=[0.1]), "satisfaction", "found 1 number, expected 3"),
    (good("dbn", continuation=[0.9]), "continuation", "found [0.9], expected a number"),
    (good("dbn", continuation=True), "continuation", "found true"),
    (good("ubm", examination=[]), "examination", "empty"),
    (good("ubm", examination=[1.0, 0.5]), "examination", "row 0: found 1.0, expected a list"),
    (good("ubm", examination=[[1.0], [0.5]]), "examination", "row 1: found 1 number, expected 2"),
    (good("ubm", examination=[[1.0], [0.5, 0.5, 0.5]]), "examination", "row 1: found 3 numbers, expected 2"),
    (good("ubm", examination=[[1.0], [0.5, -1]]), "examination", "row 1: entry 1: found -1"),
    (without("continuation_click_relevant", "ccm"), "continuation_click_relevant", "missing"),
    (good("ccm", continuation_no_click="yes"), "continuation_no_click", "found 'yes'"),
]


@pytest.mark.parametrize(("entry", "field", "reason"), BAD_INSTANCES)
def test_a_bad_instance_is_refused(tmp_path: Path, entry: dict[str, Any], field: str, reason: str) -> None:
    message = message_of(written(tmp_path, {"instances": [good(id="fine"), entry]}))
    assert "instances[1]" in message
    assert f": {field}: " in message
    assert reason in message
    if entry.get("id") == "q7":
        assert "(id 'q7')" in message


@pytest.mark.parametrize("entry", [3, None, "q7", ["q7"]])
def test_an_instance_that_is_no_object_is_refused(tmp_path: Path, entry: object) -> None:
    message = message_of(written(tmp_path, {"instances": [good(), entry]}))
    assert "instances[1]: found" in message
    assert "expected an object" in message


@pytest.mark.parametrize("literal", [HUGE, "1e999", "-" + HUGE])
def test_a_huge_number_is_refused_where_it_stands(tmp_path: Path, literal: str) -> None:
    text = json.dumps({"instances": [good(attraction=[0.5, 0.5, 123])]}).replace("123", literal)
    message = message_of(written(tmp_path, text))
    assert "instances[0] (id 'q7'): attraction: entry 2: found" in message
    assert len(message) < 400


def test_a_key_that_is_there_twice_is_refused_where_it_stands(tmp_path: Path) -> None:
    text = json.dumps({"instances": [good()]}).replace('"items"', '"attraction": [1, 1, 1], "items"')
    message = message_of(written(tmp_path, text))
    assert "instances[0] (id 'q7'): attraction: the key is there twice" in message


def test_the_same_query_under_the_same_model_is_refused_and_under_another_is_not(tmp_path: Path) -> None:
    message = message_of(written(tmp_path, {"instances": [good(), good("cm"), good()]}))
    assert "instances[2] (id 'q7'): id: instances[0] has the same id and model pbm" in message
    assert len(load_instances(written(tmp_path, {"instances": [good(), good("cm")]}))) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e-300])
def test_numbers_of_python_callers_are_checked_too(value: float) -> None:
    with pytest.raises(InstanceError, match="attraction: entry 0"):
        parse_instances({"instances": [good(attraction=[value, 0.5, 0.5])]}, "here")


@pytest.mark.parametrize("n_positions", [1, 2])
def test_positions_that_fit_are_accepted(n_positions: int) -> None:
    for instance in parse_instances({"instances": [good(m) for m in GOOD]}, "here"):
        check_positions(instance, n_positions, "here.json")


@pytest.mark.parametrize(
    ("model", "n_positions", "reason"),
    [
        ("cm", 0, "positions: found 0, expected at least 1"),
        ("cm", -1, "positions: found -1"),
        ("cm", 4, "items: found 3 for 4 positions"),
        ("pbm", 3, "examination: covers 2 positions, expected at least 3"),
        ("dcm", 3, "continuation: covers 2 positions"),
        ("ubm", 3, "examination: covers 2 positions"),
    ],
)
def test_positions_that_do_not_fit_are_refused(model: str, n_positions: int, reason: str) -> None:
    (instance,) = parse_instances({"instances": [good(model)]}, "here")
    with pytest.raises(InstanceError, match=reason) as caught:
        check_positions(instance, n_positions, "here.json")
    assert str(caught.value).startswith(f"here.json: instance 'q7' ({model}): ")


def test_as_many_positions_as_items_are_fine() -> None:
    (instance,) = parse_instances({"instances": [good("dbn")]}, "here")
    check_positions(instance, 3, "here.json")


class Moody(NamedTuple):
    attraction: PerItem
    mood: Probability
    light: PerPosition


@implements(click, Moody)
def _click(model: Moody, shown: Items, rng: Words, clicks: Ints) -> None:
    clicks[:] = 0


@implements(expected_clicks, Moody)
def _expected_clicks(model: Moody, shown: Items) -> float:
    return 0.0


def test_a_plug_in_model_is_checked_like_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.click_models.CLICK_MODELS", dict(CLICK_MODELS))
    register("moody", Moody)
    entry = {"id": "q", "model": "moody", "items": ["a"], "attraction": [0.5], "mood": 0.5, "light": [1.0]}
    (instance,) = parse_instances({"instances": [entry]}, "here")
    assert isinstance(instance.model, Moody)
    with pytest.raises(InstanceError, match=r"instances\[0\] \(id 'q'\): mood: found 2"):
        parse_instances({"instances": [{**entry, "mood": 2}]}, "here")
    with pytest.raises(InstanceError, match="light: covers 1 position"):
        check_positions(Instance("q", instance.model, "moody", ("a", "b")), 2, "here")


def test_instances_of_one_query_share_the_examination_of_its_pbm() -> None:
    entry = {"items": ["a", "b"], "attraction": [0.5, 0.2]}
    entries = [
        {"id": "q", "model": "cm", **entry},
        {"id": "q", "model": "pbm", **entry, "examination": [1.0, 0.25, 0.125]},
        {"id": "other", "model": "cm", **entry},
    ]
    known = [instance.examination for instance in parse_instances({"instances": entries}, "here")]
    assert known == [(1.0, 0.25, 0.125), (1.0, 0.25, 0.125), None]
