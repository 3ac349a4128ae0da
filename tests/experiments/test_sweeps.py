"""Sweeps: every combination once, rows that can be told apart, files that keep them apart."""

from pathlib import Path
from typing import Any

import pytest

from saferank import Results, embedded_instances, simulate
from saferank.errors import ArgumentError

INSTANCES = embedded_instances(2, models=("pbm",))
SMALL: dict[str, Any] = {"rounds": 60, "repetitions": 2, "jobs": 1, "progress": False}


@pytest.fixture(scope="module")
def swept() -> Results:
    return simulate(
        INSTANCES, ["bubble-rank", "original"], positions=[3, 5], rule=["paper:0.3", "anytime:0.3"], **SMALL
    )


def test_every_combination_is_played_once(swept: Results) -> None:
    rows = [(curve.policy, curve.rule, curve.positions) for curve in swept.curves if curve.instance == "worst-original"]
    assert len(swept.curves) == 2 * len(rows)
    assert sorted(rows, key=str) == sorted(
        [("bubble-rank", rule, k) for rule in ("paper:0.3", "anytime:0.3") for k in (3, 5)]
        + [("original", None, k) for k in (3, 5)],
        key=str,
    )


def test_every_row_is_that_of_an_experiment_of_its_own(swept: Results) -> None:
    alone = simulate(INSTANCES, ["bubble-rank"], positions=3, rule="anytime:0.3", **SMALL)
    among = [c for c in swept.curves if (c.policy, c.rule, c.positions) == ("bubble-rank", "anytime:0.3", 3)]
    assert alone.curves == among


def test_rows_are_named_by_what_differs(swept: Results) -> None:
    assert set(swept.labels) == {
        *(f"bubble-rank rule={rule} K={k}" for rule in ("paper:0.3", "anytime:0.3") for k in (3, 5)),
        "original K=3",
        "original K=5",
    }
    assert swept.policies == ["bubble-rank", "original"]
    assert "bubble-rank rule=anytime:0.3 K=5" in repr(swept)
    found = swept.compare("bubble-rank rule=paper:0.3 K=3", "bubble-rank rule=anytime:0.3 K=3")
    assert found.pairs["queries"].to_list() == [2]


def test_files_keep_the_rows_apart(swept: Results, tmp_path: Path) -> None:
    swept.save(tmp_path)
    loaded = Results.load(tmp_path)
    assert loaded.curves == swept.curves
    assert loaded.to_polars().equals(swept.to_polars())


def test_hyper_parameters_are_swept_in_every_combination() -> None:
    settings = {"bubble-rank.hidden_duels": [True, False], "bubble-rank.all_candidates": ["true"]}
    swept = simulate(INSTANCES, ["bubble-rank", "original"], settings=settings, **SMALL)
    assert swept.labels == [
        "bubble-rank:hidden_duels=true:all_candidates=true",
        "bubble-rank:hidden_duels=false:all_candidates=true",
        "original",
    ]


@pytest.mark.parametrize(
    ("setting", "reading"), [("all_candidates=true", "all-candidates"), ("hidden_duels=false", "shown-only")]
)
def test_a_value_that_is_set_plays_as_the_reading_that_has_it(setting: str, reading: str) -> None:
    """The readings of bubble-rank are made by its own file; users and coins are the same."""
    longer = {**SMALL, "rounds": 3000, "rule": "paper:0.5"}
    name, value = setting.split("=")
    by_name = simulate(INSTANCES, [f"bubble-rank:{setting}"], **longer)
    by_setting = simulate(INSTANCES, ["bubble-rank"], settings={f"bubble-rank.{name}": [value]}, **longer)
    by_reading = simulate(INSTANCES, [f"bubble-rank:{reading}"], **longer)
    usual = simulate(INSTANCES, ["bubble-rank"], **longer)
    assert by_name.curves == by_setting.curves
    assert [c.regret_mean for c in by_name.curves] == [c.regret_mean for c in by_reading.curves]
    assert [c.regret_mean for c in by_name.curves] != [c.regret_mean for c in usual.curves]


def test_settings_that_cannot_be_used_are_refused() -> None:
    for settings, sentence in {
        "top-rank.level": "settings: 'top-rank.level' begins with no policy that is played; those are bubble-rank",
        "bubble-rank.level": "bubble-rank has no hyper-parameter 'level'; it has all_candidates, hidden_duels",
        "bubble-rank.hidden_duels": "bubble-rank: hidden_duels is '3', expected true or false",
    }.items():
        with pytest.raises(ArgumentError, match=sentence):
            simulate(INSTANCES, ["bubble-rank"], settings={settings: [3]}, **SMALL)
    with pytest.raises(ArgumentError, match=r"settings of bubble-rank\.hidden_duels: True is there twice; keep one"):
        simulate(INSTANCES, ["bubble-rank"], settings={"bubble-rank.hidden_duels": [True, True]}, **SMALL)


def test_values_that_are_there_twice_or_not_at_all_are_refused() -> None:
    with pytest.raises(ArgumentError, match="positions: 3 is there twice; keep one"):
        simulate(INSTANCES, ["original"], positions=[3, 3], **SMALL)
    with pytest.raises(ArgumentError, match="rule: found none, expected one or more"):
        simulate(INSTANCES, ["original"], rule=[], **SMALL)
    with pytest.raises(ArgumentError, match="positions: found 0, expected at least 1"):
        simulate(INSTANCES, ["original"], positions=[5, 0], **SMALL)


def test_of_several_rules_a_policy_is_played_with_those_that_it_takes() -> None:
    rules = ["paper:0.3", "anytime:0.3"]
    swept = simulate(INSTANCES[:1], ["safe-draw", "bubble-rank"], rule=rules, **SMALL)
    assert [(curve.policy, curve.rule) for curve in swept.curves] == [
        ("bubble-rank", "paper:0.3"),
        ("safe-draw", "anytime:0.3"),
        ("bubble-rank", "anytime:0.3"),
    ]
    sentence = "safe-draw is not played with paper:0.3, which it does not take"
    assert swept.left_out == [sentence]
    assert sentence in repr(swept)
    assert not simulate(INSTANCES[:1], ["bubble-rank"], rule=rules, **SMALL).left_out


def test_what_is_left_out_is_kept_with_the_results(tmp_path: Path) -> None:
    swept = simulate(INSTANCES[:1], ["safe-draw"], rule=["paper:0.3", "anytime:0.3"], out=tmp_path, **SMALL)
    assert [curve.rule for curve in swept.curves] == ["anytime:0.3"]
    assert Results.load(tmp_path).left_out == swept.left_out != []


def test_a_policy_that_takes_none_of_the_rules_is_refused() -> None:
    for rule in ("paper:1/T", "paper:0.3", ["paper:0.3", "paper:1/T"]):
        with pytest.raises(ArgumentError, match="rule: safe-draw takes the rule anytime:ALPHA or budget:ALPHA, not"):
            simulate(INSTANCES[:1], ["safe-draw", "bubble-rank"], rule=rule, **SMALL)


def test_without_a_rule_every_policy_has_its_own_kind() -> None:
    played = simulate(INSTANCES[:1], ["safe-draw", "bubble-rank"], **SMALL)
    assert [(curve.policy, curve.rule) for curve in played.curves] == [
        ("safe-draw", "anytime:1/T"),
        ("bubble-rank", "paper:1/T"),
    ]
