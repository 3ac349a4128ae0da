"""The tables of sensitivity, of the study and of what was run."""

from pathlib import Path

import pytest

from saferank.reporting.claims import places_of
from saferank.reporting.data import seconds_table, what_was_run
from saferank.reporting.frames import means_of
from saferank.reporting.reading import Run, read_checked
from saferank.reporting.sensitivity import sensitivity_rows, sensitivity_tables, study_section, study_sets, varied
from saferank.table import text_of
from tests.reporting.planted import curve, reproduction


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return reproduction(tmp_path).parent


NONE = varied(means_of([]))


def test_every_variant_stands_beside_its_default(folder: Path) -> None:
    run = read_checked(folder / "sensitivity.json")
    rows = sensitivity_rows(varied(run.means), "paper:1/T", NONE, run.models)
    found: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        found.setdefault((row.policy, row.words), []).append(row.ratio and row.ratio.mean)
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
    assert default.is_default and default.curve.regret.end.mean == 950
    assert other.words == "duels: none with an item that is not shown"
    assert other.ratio is not None and other.ratio.mean == pytest.approx(99 / 950)


def test_the_error_of_a_ratio() -> None:
    results = [curve("kl-ucb-br", regret=100, stderr=3, rule="a"), curve("kl-ucb-br", regret=100, stderr=4, rule="b")]
    (_, other) = sensitivity_rows(varied(means_of(results)), "a", NONE, ["pbm"])
    assert other.ratio is not None and other.ratio[:2] == pytest.approx((1.0, 0.05))


def test_a_default_that_was_run_elsewhere_is_found_there() -> None:
    main = [curve("kl-ucb-br", regret=100, rule="a"), curve("kl-ucb-br", instance="unasked", regret=900, rule="a")]
    variants = varied(means_of([curve("kl-ucb-br", regret=50, rule="b")]))
    default, other = sensitivity_rows(variants, "a", varied(means_of(main)), ["pbm"])
    assert default.curve.regret.end.mean == 100
    assert other.ratio is not None and other.ratio.mean == 0.5


def test_without_a_default_there_is_no_ratio() -> None:
    rows = sensitivity_rows(varied(means_of([curve("kl-ucb-br", regret=50, rule="b")])), "a", NONE, ["pbm"])
    assert [row.ratio for row in rows] == [None]


def test_the_study_compares_the_rules_by_set_and_model(folder: Path) -> None:
    section = study_section(read_checked(folder / "results.json"), read_checked(folder / "study.json"))
    assert [table.title for table in section.tables] == ["Study: embedded", "Study: yandex60"]
    rows = [[text_of(cell) for cell in row] for row in section.tables[0].rows]
    models = ["PBM", "CM", "DCM", "DBN", "UBM", "CCM"]
    assert [row[:3] for row in rows] == [
        ["KL-UCB-BR", words, model] for words in ("default (paper:1/T)", "rule anytime:1e-4") for model in models
    ]
    assert {row[4] for row in rows[6:]} == {"0.750 ± 0.0086"} or {row[4][:4] for row in rows[6:]} == {"0.75"}
    assert section.words[0].startswith("With the anytime rule regret ends at 0.75 times that with the paper rule")
    assert "2 queries" in section.tables[0].caption


def test_instances_of_no_set_are_not_lost(folder: Path) -> None:
    means = read_checked(folder / "study.json").means
    assert list(study_sets(means, {})) == ["all instances"]
    assert list(study_sets(means, {"mine": ["e1"], "broken": 3})) == ["mine", "other instances"]


def test_an_instance_that_two_sets_name_counts_once(folder: Path) -> None:
    sets = study_sets(read_checked(folder / "study.json").means, {"mine": ["e1", "e2"], "yours": ["e2", "y1"]})
    assert {name: sorted(set(part["instance"])) for name, part in sets.items()} == {
        "mine": ["e1", "e2"],
        "yours": ["y1"],
    }


@pytest.mark.parametrize(("anytime", "same"), [("anytime:1/T", True), ("anytime:0.01", False)])
def test_as_much_is_proved_of_both_rules_at_1_over_T_only(anytime: str, same: bool) -> None:  # noqa: N802
    results = [curve("kl-ucb-br", rule="paper:1/T"), curve("kl-ucb-br", rule=anytime)]
    section = study_section(Run(Path("r.json"), means_of(results), {}), Run(Path("s.json"), means_of(results), {}))
    assert any("the same probability" in words for words in section.words) == same


def test_rules_on_different_queries_are_not_compared() -> None:
    results = [
        curve("kl-ucb-br", instance="a", rule="paper:1/T"),
        curve("kl-ucb-br", instance="b", rule="anytime:1/T"),
    ]
    run = Run(Path("s.json"), means_of(results), {})
    assert "no policy with both rules" in study_section(run, run).left_out


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
