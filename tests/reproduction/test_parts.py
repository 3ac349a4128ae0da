"""What a reproduction plays besides the paper's experiment."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.instances.embedded import MODELS, embedded_instances
from saferank.reporting.sensitivity import REVERSED
from saferank.reproduction.parts import (
    Parts,
    candidates_reversed,
    parts_of,
    sensitivity_rules,
    special_queries,
    study_sets,
)
from saferank.reproduction.protocol import PARTS, PROFILES, Protocol

FIVE = ("kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")
PROTOCOL = Protocol(
    profile="four queries", policies=FIVE, seed=3, without=("additions",),
)  # fmt: skip
SMALL = replace(PROFILES["quick"], queries=4, sensitivity_queries=1, study_queries=3)


@pytest.fixture(autouse=True)
def _small_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, PROTOCOL.profile, SMALL)


INSTANCES = embedded_instances(4, models=("pbm", "cm"))


def parts(protocol: Protocol = PROTOCOL) -> Parts:
    sets = study_sets(protocol, {})
    return parts_of(protocol, INSTANCES, special_queries(INSTANCES, protocol.positions), sets)


def test_the_paper_is_every_policy_on_every_query_under_every_model() -> None:
    cells = parts().paper
    assert len(cells) == 5 * 4 * 2
    assert {(cell.plan.rounds, cell.plan.repetitions, cell.plan.seed) for cell in cells} == {(100_000, 10, 3)}


def test_the_rules_are_those_that_the_paper_leaves_open() -> None:
    assert sensitivity_rules(PROTOCOL) == ("paper:1/T", "paper:1e-20", "paper:0.01", "anytime:1/T")
    other = replace(PROTOCOL, rule="anytime:0.001", rounds=2000)
    assert sensitivity_rules(other) == ("anytime:0.001", "paper:1/T", "paper:6.25e-14", "paper:0.01", "anytime:1/T")
    assert sensitivity_rules(replace(PROTOCOL, rounds=1))[1] == "paper:0.0625"


def test_sensitivity_varies_one_thing_at_a_time_on_few_queries_with_the_special_ones() -> None:
    cells = parts().sensitivity
    played = {(cell.kind.name, cell.rule_name, REVERSED in cell.instance.id) for cell in cells}
    rules = sensitivity_rules(PROTOCOL)
    assert played == {(policy, rule, False) for policy in FIVE[:2] for rule in rules} | {
        ("bubble-rank:all-candidates", "paper:1/T", False),
        ("bubble-rank:shown-only", "paper:1/T", False),
        ("kl-ucb-br", "paper:1/T", True),
    }
    assert {cell.instance.id.removesuffix(REVERSED) for cell in cells} == {"optimal-original", "worst-original"}
    assert len(cells) == len(played) * 2 * 2


def test_sensitivity_is_about_the_safe_policies_that_are_played() -> None:
    assert parts(replace(PROTOCOL, policies=("original", "top-rank"))).sensitivity == []
    only = parts(replace(PROTOCOL, policies=("kl-ucb-br",))).sensitivity
    assert {cell.kind.name for cell in only} == {"kl-ucb-br"}


def test_the_study_plays_two_rules_under_all_models() -> None:
    cells = parts().study
    assert {(cell.kind.name, cell.rule_name, cell.instance.model_name) for cell in cells} == {
        ("kl-ucb-br", rule, model) for rule in ("paper:1/T", "anytime:1/T") for model in MODELS
    }
    assert len({cell.instance.id for cell in cells}) == 3


def test_other_sets_join_the_study() -> None:
    others = {"mine": embedded_instances(5, models=("cm",), seed=9)}
    sets = study_sets(PROTOCOL, others)
    assert list(sets) == ["embedded", "mine"]
    assert len(sets["mine"]) == 3


def test_sets_that_share_ids_are_told_apart() -> None:
    others = {"mine": embedded_instances(3, models=("cm", "pbm"))}
    sets = study_sets(PROTOCOL, others)
    ids = {name: {instance.id for instance in instances} for name, instances in sets.items()}
    assert ids["mine"] == {f"{id} (mine)" for id in ids["embedded"]}
    assert len(parts_of(PROTOCOL, INSTANCES, special_queries(INSTANCES, 5), sets).study) == 2 * 3 * (len(MODELS) + 2)


def test_parts_that_are_left_out_have_no_cells() -> None:
    left = parts(replace(PROTOCOL, without=PARTS))
    assert left.sensitivity == left.study == []
    assert left.cells == left.paper


@pytest.mark.parametrize("instance", embedded_instances(3)[-6:], ids=lambda instance: instance.model_name)
def test_reversed_candidates_are_the_same_items_with_the_same_attraction(instance) -> None:  # type: ignore[no-untyped-def]
    turned = candidates_reversed(instance, 5)
    assert turned.id == instance.id + " (candidates reversed)"
    assert turned.items == (*instance.items[:5], *instance.items[:4:-1])
    before = dict(zip(instance.items, instance.model.attraction, strict=True))
    assert dict(zip(turned.items, turned.model.attraction, strict=True)) == before
    if instance.model_name == "dbn":
        assert turned.model.satisfaction.tolist()[5:] == instance.model.satisfaction.tolist()[:4:-1]
    if instance.model_name == "pbm":
        assert np.array_equal(turned.model.examination, instance.model.examination)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": ("best",)}, "unknown policy 'best'"),
        ({"rule": "luck"}, "unknown decision rule"),
    ],
)
def test_a_protocol_that_cannot_be_played_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PROTOCOL, **changes).checked()  # type: ignore[arg-type]
