"""What holds for every click model, by discovery: a new one is tested as soon as it is registered."""

import os
import subprocess
import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank.checks import check_click_model
from saferank.click_models import CLICK_MODELS, PBM, click_model, register
from saferank.click_models.shapes import PerItem, Probability, Shape, field_shapes
from saferank.instances.embedded import embedded_instances
from saferank.randomness import stream
from saferank.verbs import Items, click, expected_clicks
from tests.reference.randomness import Xoshiro
from tests.reference.users import click_models as reference

EVERY = pytest.mark.parametrize("name", CLICK_MODELS)

CLICKS_AND_EXPECTATIONS = """
import numpy as np
from saferank.instances.embedded import embedded_instances
from saferank.randomness import stream
from saferank.verbs import click, expected_clicks
for instance in embedded_instances(4, n_items=12):
    for n_positions in (1, 2, 5, 12):
        rng, clicks = stream(5, instance.id), np.full(n_positions, 9)
        shown = np.arange(12, dtype=np.uint32)[::-1][:n_positions].copy()
        print(instance.id, instance.model_name, float(expected_clicks(instance.model, shown)).hex())
        for _ in range(20):
            click(instance.model, shown, rng, clicks)
            print(clicks.tolist())
        print(rng.tolist())
"""


def random_field(shape: Shape, n: int, rng: np.random.Generator, extremes: bool) -> Any:
    """A field for n items and n positions; with ``extremes`` full of zeros and ones."""

    def numbers(size: int) -> list[float]:
        return [float(x) for x in (rng.choice([0.0, 1.0, 0.5], size) if extremes else rng.random(size))]

    for value in (numbers(1)[0], [numbers(r + 1) for r in range(n)], numbers(n)):
        try:
            return shape.read(value, n)
        except ValueError:
            continue
    raise AssertionError(f"no value for {shape}")


def random_model(name: str, seed: int, n: int = 7, extremes: bool = False) -> Any:
    rng = np.random.default_rng([seed, extremes])
    kind = CLICK_MODELS[name]
    return kind(*(random_field(shape, n, rng, extremes) for shape in field_shapes(kind).values()))


def transcribed(model: Any) -> Any:
    """The same model in the reference, from plain Python numbers."""
    shapes = field_shapes(type(model))
    return getattr(reference, type(model).__name__)(*(shapes[f].write(getattr(model, f)) for f in model._fields))


def pages(n_items: int, n_positions: int, count: int) -> list[Items]:
    rng = np.random.default_rng(n_positions)
    return [rng.permutation(n_items)[:n_positions].astype(np.uint32) for _ in range(count)]


@EVERY
@pytest.mark.parametrize("n_positions", [1, 4, 7])
def test_it_keeps_the_public_contract(name: str, n_positions: int) -> None:
    check_click_model(random_model(name, seed=1), n_positions)
    check_click_model(random_model(name, seed=2, extremes=True), n_positions)


@EVERY
@pytest.mark.parametrize("extremes", [False, True])
@pytest.mark.parametrize("n_positions", [1, 2, 5, 7])
def test_expected_clicks_equal_the_enumeration_of_all_click_vectors(
    name: str, n_positions: int, extremes: bool
) -> None:
    for seed in range(3):
        model = random_model(name, seed, extremes=extremes)
        for shown in pages(7, n_positions, 5):
            enumerated = reference.expected_clicks(transcribed(model), shown.tolist())
            assert expected_clicks(model, shown) == pytest.approx(enumerated, abs=1e-12)


@EVERY
@pytest.mark.parametrize("extremes", [False, True])
@pytest.mark.parametrize("n_positions", [1, 2, 5, 7])
def test_users_click_and_draw_exactly_as_in_the_reference(name: str, n_positions: int, extremes: bool) -> None:
    model, state = random_model(name, 3, extremes=extremes), stream(11, name)
    slow, rng = transcribed(model), Xoshiro(state.tolist())
    for shown in pages(7, n_positions, 200):
        clicks = np.full(n_positions, 9)
        click(model, shown, state, clicks)
        assert clicks.tolist() == slow.simulate(shown.tolist(), rng)
    assert state.tolist() == rng.state  # not a draw more, not a draw less


@EVERY
def test_click_vectors_come_as_often_as_their_probability_says(name: str) -> None:
    """A correct model fails with probability below 8 * 6e-7 (5 standard errors for each of 8 vectors)."""
    model, shown, users = random_model(name, 5), np.array([4, 0, 6], np.uint32), 20_000
    rng, clicks, seen = stream(3, name), np.empty(3, np.int64), dict.fromkeys(product([0, 1], repeat=3), 0)
    for _ in range(users):
        click(model, shown, rng, clicks)
        seen[tuple(clicks.tolist())] += 1
    for vector, count in seen.items():
        p = transcribed(model).probability_of(shown.tolist(), list(vector))
        assert abs(count - users * p) <= 5 * np.sqrt(users * p * (1 - p)) + 1e-9


@EVERY
def test_long_pages_are_expected_as_simulated(name: str) -> None:
    check_click_model(random_model(name, 6, n=30), n_positions=25)


@EVERY
def test_models_may_cover_more_positions_than_are_shown(name: str) -> None:
    model, shown = random_model(name, 7), np.array([3, 1], np.uint32)
    enumerated = reference.expected_clicks(transcribed(model), [3, 1])
    assert expected_clicks(model, shown) == pytest.approx(enumerated, abs=1e-12)


def test_a_page_longer_than_ubm_supports_is_refused() -> None:
    model = random_model("ubm", 8, n=120)
    assert expected_clicks(model, np.arange(100, dtype=np.uint32)) > 0
    with pytest.raises(IndexError):
        expected_clicks(model, np.arange(120, dtype=np.uint32))


def test_compiled_and_interpreted_runs_agree_to_the_last_digit() -> None:
    outputs = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        run = [sys.executable, "-c", CLICKS_AND_EXPECTATIONS]
        outputs.append(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("0x") == 4 * len(CLICK_MODELS) * 4


def test_every_click_model_has_embedded_instances() -> None:
    assert {instance.model_name for instance in embedded_instances(2)} == set(CLICK_MODELS)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown click model 'pmb'; known ones: pbm, cm, dcm, dbn, ubm, ccm"):
        click_model("pmb")


class Verbless(NamedTuple):
    attraction: PerItem


class Shapeless(NamedTuple):
    attraction: float


class Headless(NamedTuple):
    mood: Probability
    attraction: PerItem


def test_only_whole_models_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.click_models.CLICK_MODELS", dict(CLICK_MODELS))
    with pytest.raises(ValueError, match=r"does not implement click\(\) for Verbless"):
        register("verbless", Verbless)
    with pytest.raises(ValueError, match="'pbm' exists already: PBM"):
        register("pbm", Verbless)
    register("pbm", PBM)  # again the same: a plug-in may be imported twice
    monkeypatch.setattr("saferank.click_models.implemented", lambda verb, kind: verb)
    with pytest.raises(TypeError, match="field 'attraction' of click model Shapeless has no shape"):
        register("shapeless", Shapeless)
    with pytest.raises(ValueError, match="the first field of click model 'headless' must be attraction"):
        register("headless", Headless)
    register("verbless", Verbless)
    assert click_model("verbless") is Verbless
