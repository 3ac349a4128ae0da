"""Experiments: results depend on the seed and on what is played, on nothing else."""

import math
import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.click_models import PBM
from saferank.instances import Instance
from saferank.instances.embedded import embedded_instances
from saferank.policies import POLICIES
from saferank.safety import violates
from saferank.simulation import experiment
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Cell, Plan, cells_of, default_checkpoints, run
from saferank.statistics import decision
from saferank.statistics.duels import new_duels
from saferank.statistics.leaders import new_leader_counts
from saferank.verbs import click, expected_clicks
from tests.policies.at_work import AtWork

PAPER = ("kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "original")
PLAN = Plan(PAPER, n_positions=5, rounds=1500, repetitions=3, rule="paper:0.05")
INSTANCES = embedded_instances(2, models=("pbm", "cm"))


def large_instance(n_items: int = 300) -> Instance:
    """More items than a matrix of duels takes, a few of them good."""
    attraction = np.random.default_rng(3).uniform(0.1, 0.9, n_items)
    return Instance("large", PBM(attraction, np.full(5, 0.9)), "pbm", tuple(f"item-{i}" for i in range(n_items)))


def only_cell(policy: str, instance: Instance, **changes: Any) -> Cell:
    (cell,) = cells_of([instance], replace(PLAN, policies=(policy,), **changes))
    return cell


def test_results_do_not_depend_on_the_number_of_jobs() -> None:
    cells = cells_of(INSTANCES, PLAN)
    assert simulate(cells, jobs=1) == simulate(cells, jobs=2) == simulate(cells, jobs=3)


def test_results_do_not_depend_on_what_else_is_played_nor_on_the_order() -> None:
    cells = cells_of(INSTANCES, PLAN)
    among_others = simulate(cells, jobs=2)
    assert simulate(cells[::-1], jobs=2)[::-1] == among_others
    for place in (0, 7, len(cells) - 1):
        assert simulate([cells[place]]) == [among_others[place]]


def test_more_repetitions_begin_with_the_same_runs() -> None:
    few, more = (only_cell("kl-ucb-br", INSTANCES[0], repetitions=n) for n in (2, 5))
    assert np.array_equal(run(few, 1), run(more, 1))


def test_another_seed_gives_other_results() -> None:
    of_seed = [simulate(cells_of(INSTANCES[:1], replace(PLAN, seed=seed))) for seed in (0, 0, 1)]
    assert of_seed[0] == of_seed[1]
    assert of_seed[0][0].regret_mean != of_seed[2][0].regret_mean


def test_repetitions_and_policies_have_streams_of_their_own_and_the_same_users() -> None:
    cells = [only_cell(policy, instance) for instance in INSTANCES for policy in PAPER]
    streams = [cell.streams(repetition) for cell in cells for repetition in range(3)]
    policies, users = ({tuple(words.tolist()) for words in kind} for kind in zip(*streams, strict=True))
    assert len(policies) == len(streams)
    assert len(users) == len(INSTANCES) * 3
    assert not policies & users
    other_rule = only_cell("kl-ucb-br", INSTANCES[0], rule="paper:0.1")
    assert [words.tolist() for words in other_rule.streams(2)] == [words.tolist() for words in cells[0].streams(2)]


def test_a_policy_shows_the_same_pages_under_two_rules_until_one_decides() -> None:
    """A rule that asks for more decides later: equal regret up to then, and another one afterwards."""
    hasty, slow = (
        run(only_cell("kl-ucb-br", INSTANCES[2], rule=rule, checkpoints=tuple(range(1, 1501))), 0)[:, 0]
        for rule in ("paper:0.3", "paper:0.01")
    )
    apart = int(np.argmax(hasty != slow))
    assert apart > 20 and hasty[-1] != slow[-1]


@pytest.mark.parametrize("rounds", [1, 9, 10, 12345, 10**6, 10**15])
def test_default_checkpoints_include_powers_of_ten_and_the_last_round(rounds: int) -> None:
    chosen = default_checkpoints(rounds).tolist()
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 1
    assert chosen[-1] == rounds
    assert {10**k for k in range(len(str(rounds))) if 10**k <= rounds} <= set(chosen)
    assert len(chosen) <= 216


def test_explicit_checkpoints_cut_the_same_curve() -> None:
    everywhere = run(only_cell("bubble-rank", INSTANCES[1], checkpoints=tuple(range(1, 1501))), 0)
    chosen = only_cell("bubble-rank", INSTANCES[1], checkpoints=(1500, 7, 7, 100))
    assert chosen.plan.checkpoint_rounds().tolist() == [7, 100, 1500]
    assert np.array_equal(run(chosen, 0), everywhere[[6, 99, 1499]])


def test_means_and_standard_errors_are_those_of_the_runs() -> None:
    cell = only_cell("top-rank", INSTANCES[1])
    (result,) = simulate([cell])
    runs = [run(cell, repetition) for repetition in range(3)]
    for place in (0, len(result.rounds) // 2, -1):
        for column, (mean, stderr) in enumerate(
            [(result.regret_mean, result.regret_stderr), (result.violations_mean, result.violations_stderr)]
        ):
            values = [float(rows[place, column]) for rows in runs]
            assert mean[place] == pytest.approx(statistics.fmean(values))
            assert stderr[place] == pytest.approx(statistics.stdev(values) / math.sqrt(3))


def test_a_single_repetition_has_no_standard_error() -> None:
    (result,) = simulate([only_cell("original", INSTANCES[0], repetitions=1)])
    assert set(result.regret_stderr) == set(result.violations_stderr) == {None}


def test_only_policies_with_a_rule_name_it_and_only_certifying_ones_have_wrong_certificates() -> None:
    results = {result.policy: result for result in simulate(cells_of(INSTANCES[:1], PLAN))}
    assert {name for name in PAPER if results[name].rule is None} == {"top-rank", "uni-rank", "original"}
    assert results["kl-ucb-br"].rule == "paper:0.05"
    assert {name for name in PAPER if results[name].wrong_certificates_mean is None} == {"uni-rank", "original"}


def by_hand(cell: Cell, repetition: int) -> list[list[float]]:
    """The rows of a run, every round played by calls of the verbs from Python."""
    state = AtWork(cell.kind, cell.setup)
    policy_rng, user_rng = cell.streams(repetition)
    impression = state.blank()
    clicks, regret, violations, rows = np.zeros(5, np.int64), 0.0, 0, []
    for _ in range(cell.plan.rounds):
        state.choose(policy_rng, impression)
        click(cell.world.model, impression.shown, user_rng, clicks)
        regret += cell.world.best - expected_clicks(cell.world.model, impression.shown)
        violations += bool(violates(cell.world.judge, impression.shown))
        state.learn(impression, clicks)
        rows.append([regret, violations, wrong_certificates(cell, state)])
    return rows


def wrong_certificates(cell: Cell, state: Any) -> int:
    if not cell.kind.certifies:
        return 0
    certificates, attraction = state.duels.certificates, cell.world.model.attraction
    given = slice(certificates.given[0])
    pairs = zip(certificates.better[given], certificates.worse[given], strict=True)
    return sum(bool(attraction[better] < attraction[worse]) for better, worse in pairs)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_run_is_the_sum_over_its_rounds(policy: str) -> None:
    rule = POLICIES[policy].default_rule("0.9")
    cell = only_cell(policy, INSTANCES[2], rounds=400, rule=rule, checkpoints=tuple(range(1, 401)))
    rows, rounds = run(cell, 1), np.arange(1, 401)
    assert rows[:, :3] == pytest.approx(np.array(by_hand(cell, 1)), rel=1e-12)
    clicks = (rounds * cell.world.best - rows[:, 0]) / (rounds * cell.world.original)
    assert rows[:, 3] == pytest.approx(clicks, rel=1e-9)
    single = np.diff(rounds * clicks, prepend=0.0)  # of every page by itself
    assert rows[:, 4] == pytest.approx(np.minimum.accumulate(single), rel=1e-6)


def test_the_hasty_rule_of_that_test_gives_wrong_certificates() -> None:
    assert run(only_cell("kl-ucb-br", INSTANCES[2], rounds=400, rule="paper:0.9"), 1)[-1, 2] > 0


@pytest.mark.parametrize("policy", PAPER)
def test_results_do_not_depend_on_the_length_of_segments(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = only_cell(policy, INSTANCES[0])
    expected = run(cell, 0)
    monkeypatch.setattr(experiment, "FIRST_SEGMENT", 7)
    monkeypatch.setattr(experiment, "SEGMENT_SECONDS", 1e-6)
    assert np.array_equal(run(cell, 0), expected)


@pytest.fixture
def tiny_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that grows starts far too small."""
    for module in ("kl_ucb_br", "bubble_rank"):
        monkeypatch.setattr(
            f"saferank.policies.{module}.duels_for", lambda *size: new_duels(size[0], 1, direct_items=0)
        )
    one_leader = "saferank.policies.kl_ucb_br.new_leader_counts"
    monkeypatch.setattr(one_leader, lambda width, capacity: new_leader_counts(width, 1))
    monkeypatch.setattr(decision, "FIRST_LENGTH", 2)
    monkeypatch.setattr("saferank.policies.shared.room._FAR_AHEAD", 1)
    monkeypatch.setattr(decision, "_shared_rule", lambda kind, level: kind(level))


@pytest.mark.parametrize("policy", ["kl-ucb-br", "bubble-rank"])
@pytest.mark.parametrize("instance", [large_instance(), INSTANCES[0]], ids=["hashed", "dense"])
def test_growing_does_not_change_results(policy: str, instance: Instance, request: pytest.FixtureRequest) -> None:
    changes = {"rounds": 20_000, "rule": "paper:0.3"}
    expected = run(only_cell(policy, instance, **changes), 0)
    request.getfixturevalue("tiny_tables")
    assert np.array_equal(run(only_cell(policy, instance, **changes), 0), expected)


def test_what_the_listener_raises_ends_the_experiment() -> None:
    def refuse(rounds: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        simulate(cells_of(INSTANCES, PLAN), jobs=2, on_rounds=refuse)


def test_the_listener_hears_of_every_round() -> None:
    heard: list[int] = []
    simulate(cells_of(INSTANCES[:1], PLAN), jobs=2, on_rounds=heard.append)
    assert sum(heard) == len(PAPER) * PLAN.repetitions * PLAN.rounds


def test_a_catalogue_that_is_too_large_for_a_policy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'large' has 5000 items; top-rank .* at most 4096"):
        cells_of([large_instance(5000)], PLAN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds: found 0, expected at least 1"),
        ({"repetitions": 0}, "repetitions: found 0, expected at least 1"),
        ({"n_positions": 0}, "positions: found 0, expected at least 1"),
        ({"seed": -1}, "seed: found -1, expected at least 0"),
        ({"policies": ()}, "policies: found none"),
        ({"policies": ("original", "original")}, "policies: original is there twice; keep one"),
        ({"policies": ("best",)}, "unknown policy 'best'"),
        ({"rule": "luck:1"}, "unknown decision rule"),
        ({"checkpoints": (0,)}, "checkpoints: found 0, expected whole numbers from 1 to 1500"),
        ({"checkpoints": (1501,)}, "checkpoints: found 1501"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PLAN, **changes)


def test_a_policy_is_told_the_examination_of_the_pbm_with_the_same_id() -> None:
    pbm, cm = embedded_instances(3, models=("pbm", "cm"))[4:]
    plan = Plan(("pbm-ucb",), n_positions=5, rounds=10, repetitions=1)
    told = [cell.setup.examination for cell in cells_of([pbm, replace(cm, examination=None)], plan)]
    assert told == [tuple(pbm.model.examination.tolist())] * 2


def test_a_policy_that_needs_an_examination_nobody_knows_is_refused() -> None:
    (cm,) = embedded_instances(3, models=("cm",))[2:]
    plan = Plan(("pbm-ts",), n_positions=5, rounds=10, repetitions=1)
    with pytest.raises(ValueError, match=r"'query-03' \(cm\): pbm-ts needs .* add a pbm instance with the same id"):
        cells_of([replace(cm, examination=None)], plan)
    with pytest.raises(ValueError, match=r"examination of position 5 is 0.0, .* pbm-ts needs it"):
        cells_of([replace(cm, examination=(1.0, 0.9, 0.8, 0.7, 0.0))], plan)
    assert cells_of([replace(cm, examination=None)], replace(plan, policies=("top-rank",)))
