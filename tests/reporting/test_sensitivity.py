"""The tables of sensitivity, of the study and of what was run."""

from pathlib import Path

import pytest

from saferank.reporting.claims import places_of
from saferank.reporting.data import seconds_table, what_was_run
from saferank.reporting.frames import means_of
from saferank.reporting.reading import Run, read_checked
from saferank.reporting.sensitivity import sensitivity_rows, sensitivity_tables, varied
from saferank.reporting.study import study_pairs
from tests.reporting.planted import curve, reproduction


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return reproduction(tmp_path).parent


NONE = varied(means_of([]))


def test_every_variant_stands_beside_its_default(folder: Path) -> None:
    run = read_checked(folder / "sensitivity.json")
    rows = sensitivity_rows(varied(run.means), "paper:1/T", NONE, run.models)
    found = {
        (row.policy, row.words): [effect.ratio and effect.ratio.mean for effect in row.endings if effect]
        for row in rows
    }
    assert found == {
        ("KL-UCB-BR", "default (paper:1/T)"): [None, None],
        ("KL-UCB-BR", "rule paper:1e-16"): [2.0, 2.0],
        ("KL-UCB-BR", "rule anytime:1e-4"): [0.75, 0.75],
        ("KL-UCB-BR", "ties: candidates in reverse order"): [1.01, 1.01],
        ("BubbleRank", "default (paper:1/T)"): [None, None],
        ("BubbleRank", "rule paper:1e-16"): [2.0, 2.0],
        ("BubbleRank", "rule anytime:1e-4"): [0.75, 0.75],
        ("BubbleRank", "candidates: all unranked items, beaten ones too"): [1.2, 1.2],
        ("BubbleRank", "duels: none with an item that is not shown"): [None, None],  # on a query without a default
    }


def test_the_special_queries_have_tables_of_their_own(folder: Path) -> None:
    main = read_checked(folder / "results.json")
    places = places_of(main, {})
    tables = sensitivity_tables(read_checked(folder / "sensitivity.json"), "paper:1/T", main.means, places)
    assert [title for title, _ in tables] == [
        "2 queries together",
        "the query whose original ranking holds none of the best alone",
    ]
    default, other = tables[1][1]
    assert default.is_default and default.endings[0] is not None and default.endings[0].curve.regret.end.mean == 950
    assert other.words == "duels: none with an item that is not shown"
    assert other.endings[0] is not None and other.endings[0].ratio is not None
    assert other.endings[0].ratio.mean == pytest.approx(99 / 950)


def test_the_error_of_a_ratio() -> None:
    results = [curve("kl-ucb-br", regret=100, stderr=3, rule="a"), curve("kl-ucb-br", regret=100, stderr=4, rule="b")]
    (_, other) = sensitivity_rows(varied(means_of(results)), "a", NONE, ["pbm"])
    assert other.endings[0] is not None and other.endings[0].ratio is not None
    assert other.endings[0].ratio[:2] == pytest.approx((1.0, 0.05))


def test_a_default_that_was_run_elsewhere_is_found_there() -> None:
    main = [curve("kl-ucb-br", regret=100, rule="a"), curve("kl-ucb-br", instance="unasked", regret=900, rule="a")]
    variants = varied(means_of([curve("kl-ucb-br", regret=50, rule="b")]))
    default, other = sensitivity_rows(variants, "a", varied(means_of(main)), ["pbm"])
    assert default.endings[0] is not None and default.endings[0].curve.regret.end.mean == 100
    assert other.endings[0] is not None and other.endings[0].ratio is not None
    assert other.endings[0].ratio.mean == 0.5


def test_without_a_default_there_is_no_ratio() -> None:
    rows = sensitivity_rows(varied(means_of([curve("kl-ucb-br", regret=50, rule="b")])), "a", NONE, ["pbm"])
    assert [[effect.ratio for effect in row.endings if effect] for row in rows] == [[None]]


def test_the_study_pairs_the_rules_by_set_and_model(folder: Path) -> None:
    run = read_checked(folder / "study.json")
    sets = study_pairs(run, {"embedded": ["e1", "e2"], "yandex60": ["y1"]})
    assert {name: [pair.model for pair in pairs] for name, pairs in sets.items()} == {
        name: ["PBM", "CM", "DCM", "DBN", "UBM", "CCM"] for name in ("embedded", "yandex60")
    }
    pair = sets["embedded"][0]
    assert (pair.paper.instances, pair.rules) == (2, ("paper:1/T", "anytime:1e-4"))
    assert pair.ratio is not None and pair.ratio.mean == 0.75
    assert pair.same_level  # 1/T and 1e-4 at T = 10,000


def test_instances_of_no_set_are_not_lost(folder: Path) -> None:
    run = read_checked(folder / "study.json")
    assert list(study_pairs(run, {})) == ["all instances"]
    assert list(study_pairs(run, {"mine": ["e1"], "broken": 3})) == ["mine", "other instances"]


def test_an_instance_that_two_sets_name_counts_once(folder: Path) -> None:
    sets = study_pairs(read_checked(folder / "study.json"), {"mine": ["e1", "e2"], "yours": ["e2", "y1"]})
    assert {name: pairs[0].paper.instances for name, pairs in sets.items()} == {"mine": 2, "yours": 1}


@pytest.mark.parametrize(
    ("paper", "anytime", "same"),
    [
        ("paper:1/T", "anytime:1/T", True),
        ("paper:1e-4", "anytime:1/T", True),  # T = 10,000
        ("paper:0.01", "anytime:0.01", False),  # T delta^2 = 1: nothing is proved
        ("paper:1e-3", "anytime:0.01", True),
    ],
)
def test_what_is_proved_of_either_rule(paper: str, anytime: str, same: bool) -> None:
    results = [curve("kl-ucb-br", rule=paper), curve("kl-ucb-br", rule=anytime)]
    assert study_pairs(Run(Path("s.json"), means_of(results), {}), {})["all instances"][0].same_level == same


def test_rules_on_different_queries_make_no_pair() -> None:
    results = [curve("kl-ucb-br", instance="a", rule="paper:0.1"), curve("kl-ucb-br", instance="b", rule="anytime:0.1")]
    assert study_pairs(Run(Path("s.json"), means_of(results), {}), {}) == {}


def test_what_was_run_says_everything(folder: Path) -> None:
    run = read_checked(folder / "results.json")
    rows = dict(what_was_run(run))
    assert rows["seed"] == "3" and rows["peak memory, MB"] == "321" and rows["click models"] == "pbm, cm"
    assert rows["repetitions"] == "20" and rows["cpus"] == "2"
    seconds = seconds_table(run)
    assert seconds is not None and seconds.rows == [["UniRank", "9.0", "75%"], ["KL-UCB-BR", "3.0", "25%"]]


@pytest.mark.parametrize("facts", [None, 3, {"seconds_by_policy": 7}, {"seconds_by_policy": {"a": "x"}}])
def test_odd_provenance_does_no_harm(facts: object) -> None:
    run = Run(Path("r.json"), means_of([curve("original")]), {"machine": "none", "reproduction": facts})
    assert seconds_table(run) is None
    assert ("rounds", "10,000") in what_was_run(run)
