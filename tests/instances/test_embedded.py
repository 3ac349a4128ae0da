"""The embedded set has the stated shape, the same on every machine."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from saferank.click_models import CLICK_MODELS
from saferank.click_models.best import best_reward
from saferank.errors import ArgumentError
from saferank.instances import Instance, check_positions, load_instances, save_instances
from saferank.instances.embedded import MODELS, OPTIMAL, WORST, embedded_instances
from saferank.verbs import Floats, expected_clicks


def attractions(instances: list[Instance], model: str) -> Floats:
    """One row per ordinary query."""
    ordinary = [i for i in instances if i.model_name == model and i.id not in (OPTIMAL, WORST)]
    return np.array([instance.model.attraction for instance in ordinary])


def special(identity: str, model: str, n_items: int = 10) -> Floats:
    (found,) = [i for i in embedded_instances(2, n_items, (model,)) if i.id == identity]
    attraction: Floats = found.model.attraction
    return attraction


def best_already_on_top(attraction: Floats) -> float:
    return float(np.mean([np.mean(np.argsort(-row)[:5] < 5) for row in attraction]))


def regret(instance: Instance) -> float:
    return best_reward(instance.model, 5).value - expected_clicks(instance.model, np.arange(5, dtype=np.uint32))


def test_there_is_one_instance_per_query_and_model() -> None:
    instances = embedded_instances()
    assert set(MODELS) == set(CLICK_MODELS)
    assert len({(i.id, i.model_name) for i in instances}) == len(instances) == 20 * 6
    assert all(len(i.items) == 10 and type(i.model) is CLICK_MODELS[i.model_name] for i in instances)


def test_a_seed_gives_the_same_set_and_another_seed_another_one() -> None:
    one, again, other = (attractions(embedded_instances(seed=seed), "dbn") for seed in (4, 4, 5))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_the_default_set_never_changes(tmp_path: Path) -> None:
    save_instances(tmp_path / "set.json", embedded_instances())
    assert hashlib.sha256((tmp_path / "set.json").read_bytes()).hexdigest().startswith("f4059fbf5af2eea2")


def test_a_query_does_not_depend_on_the_number_of_queries_or_models() -> None:
    (one,) = embedded_instances(1, models=("ubm",))
    few = {i.id: i.model.attraction.tolist() for i in embedded_instances(5, models=("ubm",))}
    many = {i.id: i.model.attraction.tolist() for i in embedded_instances(9) if i.model_name == "ubm"}
    assert {identity: many[identity] for identity in few} == few
    assert one.model.attraction.tolist() == many[one.id]


@pytest.mark.parametrize("n_items", [10, 13, 30])
def test_the_set_is_a_valid_file(tmp_path: Path, n_items: int) -> None:
    path = tmp_path / "set.json"
    save_instances(path, embedded_instances(3, n_items))
    for instance in load_instances(path):
        check_positions(instance, n_items, "set.json")
    assert len(json.loads(path.read_text())["instances"]) == 18


def test_attraction_falls_from_two_fifths_to_about_a_seventh() -> None:
    profile = attractions(embedded_instances(), "pbm").mean(axis=0)
    assert 0.35 < profile[0] < 0.45
    assert 0.12 < profile[4:].mean() < 0.17
    assert profile[0] > profile[1] > profile[2:].max()


def test_attraction_is_noisy_and_sane() -> None:
    for model in MODELS:
        attraction = attractions(embedded_instances(), model)
        assert attraction.min() > 0.01
        assert attraction.max() < 0.9
        assert (attraction.std(axis=0) > 0.3 * attraction.mean(axis=0))[1:].all()


def test_pbm_examination_is_that_of_web_search() -> None:
    examination = embedded_instances(models=("pbm",))[0].model.examination
    assert examination.tolist() == [1.0, 0.96, 0.76, 0.59, 0.46, 0.39, 0.33, 0.28, 0.26, 0.27]


def test_two_thirds_of_the_best_five_are_already_on_top() -> None:
    assert 0.6 <= best_already_on_top(attractions(embedded_instances(), "pbm")) <= 0.7
    assert 0.6 <= best_already_on_top(attractions(embedded_instances(1000, models=("pbm",)), "pbm")) <= 0.7


def test_models_without_position_bias_keep_it_in_their_attractions() -> None:
    instances = embedded_instances()
    bottom = {model: attractions(instances, model)[:, 5:].mean() for model in MODELS}
    assert bottom["cm"] < bottom["dbn"] < bottom["dcm"] < bottom["pbm"] < bottom["ubm"]


def test_most_queries_leave_room_for_improvement() -> None:
    for model in MODELS:
        ordinary = [i for i in embedded_instances(7, models=(model,)) if i.id not in (OPTIMAL, WORST)]
        assert np.mean([regret(i) > 0.001 for i in ordinary]) > 0.8


@pytest.mark.parametrize("n_items", [10, 14])
@pytest.mark.parametrize("model", MODELS)
def test_the_optimal_original_is_in_strictly_decreasing_order(model: str, n_items: int) -> None:
    attraction = special(OPTIMAL, model, n_items)
    assert (np.diff(attraction) < 0).all()
    assert attraction.min() > 0.01


@pytest.mark.parametrize("n_items", [10, 14])
@pytest.mark.parametrize("model", MODELS)
def test_the_worst_original_holds_none_of_the_best_five(model: str, n_items: int) -> None:
    attraction = special(WORST, model, n_items)
    assert np.sort(attraction)[-5] > attraction[:5].max()
    assert attraction.min() > 0.01


@pytest.mark.parametrize("model", ["pbm", "cm"])
def test_the_optimal_original_has_no_regret_in_the_models_of_the_paper(model: str) -> None:
    optimal, worst = embedded_instances(2, models=(model,))
    assert regret(optimal) == 0.0
    assert regret(worst) > 0.1


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ArgumentError, match="queries: found 0, expected at least 1"):
        embedded_instances(queries=0)
    with pytest.raises(ArgumentError, match="n_items: found 9, expected at least 10"):
        embedded_instances(n_items=9)
    with pytest.raises(ValueError, match="'sdbn'; known ones: pbm, cm"):
        embedded_instances(models=("pbm", "sdbn"))
