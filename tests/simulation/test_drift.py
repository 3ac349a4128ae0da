"""Worlds that change: the schedule by hand, whole runs against a transcription, no effect without a change."""

from dataclasses import replace

import numpy as np
import pytest

import saferank
from saferank.click_models import CM, PBM
from saferank.errors import ArgumentError
from saferank.instances import Instance
from saferank.instances.embedded import embedded_instances
from saferank.simulation.drift import Drift, arrivals, arrivals_every, departures_every, parse_drift, slow, step
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Plan, cells_of, run
from tests.reference import policies as literal_policies
from tests.reference.decision import paper_decides
from tests.reference.randomness import Xoshiro
from tests.reference.users import click_models as literal_users
from tests.reference.users import drift as literal

ATTRACTION = [0.2, 0.7, 0.1, 0.45, 0.9]
EXAMINATION = [0.9, 0.6, 0.5]
ROUNDS = 400
PLAN = Plan(("kl-ucb-br",), 3, ROUNDS, 1, "paper:0.3", seed=5, checkpoints=tuple(range(1, ROUNDS + 1)))

DRIFTS: dict[str, tuple[Drift, literal.World]] = {
    "original": (
        step(100, "original"),
        literal.step(ATTRACTION, 100, literal.original_optimal(ATTRACTION)),
    ),
    "reversed": (step(200, "reversed"), literal.step(ATTRACTION, 200, literal.turned_round(ATTRACTION))),
    "given": (step(1, [0.5, 0.4, 0.3, 0.2, 0.1]), lambda now: [0.5, 0.4, 0.3, 0.2, 0.1]),
    "slow": (
        slow(50, 350, "reversed", steps=7),
        literal.slow(ATTRACTION, 50, 350, literal.turned_round(ATTRACTION), 7),
    ),
    "arrivals": (
        arrivals({4: 150, 3: 2}, {1: 300}),
        literal.arrivals(ATTRACTION, {4: 150, 3: 2}, {1: 300}),
    ),
    "every": (arrivals_every(120), literal.arrivals(ATTRACTION, {3: 121, 4: 241}, {})),
    "departures": (departures_every(120), literal.departures_every(ATTRACTION, 3, 120)),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_the_schedule_is_that_of_the_transcription(name: str) -> None:
    drift, world = DRIFTS[name]
    changes = drift.changes(np.array(ATTRACTION), 3, ROUNDS)
    assert changes[0].first == 1
    for now in range(1, ROUNDS + 1):
        today = [change.attraction for change in changes if change.first <= now][-1]
        assert today.tolist() == world(now)


@pytest.mark.parametrize("model", ["pbm", "cm"])
@pytest.mark.parametrize("name", DRIFTS)
def test_a_run_equals_the_transcription_round_by_round(name: str, model: str) -> None:
    """Violations and wrong certificates exactly, regret and clicks up to rounding, for the transcription enumerates."""
    drift, world = DRIFTS[name]
    users = PBM(np.array(ATTRACTION), np.array(EXAMINATION)) if model == "pbm" else CM(np.array(ATTRACTION))
    slow_users = literal_users.PBM(ATTRACTION, EXAMINATION) if model == "pbm" else literal_users.CM(ATTRACTION)
    (cell,) = cells_of([Instance("drifting", users, model, tuple("abcde"))], replace(PLAN, drift=drift))
    words = [Xoshiro(words.tolist()) for words in cell.streams(0)]
    policy = literal_policies.KlUcbBr(5, 3, words[0], lambda s, n: paper_decides(s, n, 0.3))
    rows = np.array(literal.play(policy, slow_users, world, words[1], ROUNDS))
    fast = run(cell, 0)
    assert fast[:, 1:3].tolist() == rows[:, 1:3].tolist()
    assert np.allclose(fast, rows, atol=1e-9)


def test_wrong_certificates_are_judged_by_the_world_of_their_round() -> None:
    """The same pages and clicks until round 300; certificates that are given afterwards are of the world of then."""
    instance = Instance("judged", PBM(np.array([0.1, 0.9]), np.array([1.0, 1.0])), "pbm", ("a", "b"))
    plan = Plan(("bubble-rank",), 2, 600, 1, "paper:0.1", seed=2, checkpoints=(299, 600))
    (still,) = cells_of([instance], plan)
    (turned,) = cells_of([instance], replace(plan, drift=step(300, "reversed")))
    (turned_at_once,) = cells_of([instance], replace(plan, drift=step(1, "reversed")))
    assert run(still, 0)[:, 2].tolist() == run(turned, 0)[:, 2].tolist() == [0, 0]
    assert run(turned_at_once, 0)[-1, 2] == 0


def test_without_a_change_nothing_changes() -> None:
    """Equal to the last digit: no drift, a drift to the same attractions, and a drift after the last round."""
    policies = ("kl-ucb-br", "bubble-rank", "top-rank", "original")
    plan = Plan(policies, 5, 3000, 2, "paper:0.05", checkpoints=(100, 3000))
    instances = embedded_instances(2, models=("pbm", "cm"))[2:]
    plain = simulate(cells_of(instances, plan))
    later = simulate(cells_of(instances, replace(plan, drift=step(3001, "reversed"))))
    assert plain == [replace(result, world=None) for result in later]
    assert {result.world for result in later} == {"drift:step:3001:reversed"}
    for instance in instances:
        same = step(1234, instance.model.attraction.tolist())
        cells = cells_of([instance], replace(plan, drift=same))
        played = [replace(result, world=None) for result in simulate(cells)]
        assert played == [result for result in plain if result.model == instance.model_name]


def test_rounds_before_changes_are_among_the_default_checkpoints() -> None:
    plan = Plan(("original",), 5, 5000, 1, drift=step(1777, "reversed") + step(4321, "original"))
    (cell,) = cells_of(embedded_instances(2, models=("pbm",))[1:], plan)
    assert {1776, 4320} <= set(cell.checkpoints.tolist())


def test_regret_is_that_of_the_present_world() -> None:
    """The original ranking is optimal from round 101 on, so its regret stops there."""
    plan = Plan(("original",), 5, 300, 1, drift=step(101, "original"), checkpoints=(50, 100, 101, 300))
    (cell,) = cells_of(embedded_instances(2, models=("pbm",))[1:], plan)
    regret = run(cell, 0)[:, 0]
    assert 0 < regret[0] < regret[1] == regret[2] == regret[3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step:5", "is no drift; expected step:ROUND:TO"),
        ("step:0:original", "rounds count from 1"),
        ("step:10:sideways", "unknown target 'sideways'"),
        ("slow:20:10:original", "a slow change from round 20 to 10 in 100 steps is none"),
        ("step:1.5:original", "1.5 is no whole number of rounds"),
        ("departures:0", "rounds count from 1"),
        ("departures:5:original", "is no drift; expected .* or departures:EVERY"),
        ("", "is no drift"),
    ],
)
def test_what_is_wrong_with_a_drift_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_drift(text)


def test_a_drift_is_read_from_its_text() -> None:
    texts = ["step:5e4:original", "slow:10:20:reversed,step:30:original", "arrivals:100", "departures:100"]
    assert [str(parse_drift(text)) for text in texts] == ["step:50000:original", *texts[1:]]


def test_attractions_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="a drift to 2 attractions cannot be played with 5 items"):
        step(3, [0.1, 0.2]).changes(np.array(ATTRACTION), 3, 10)


def test_the_library_s_simulate_takes_a_drift_and_a_lifetime() -> None:
    """As texts or objects; what is wrong is an ``ArgumentError`` that names the argument."""
    instances = embedded_instances(2, models=("pbm",))
    options = {"policies": ["original"], "rounds": 200, "repetitions": 1, "jobs": 1, "progress": False}
    plain, by_text, by_object = (
        saferank.simulate(instances, **options, world=world).curves[0].regret_mean[-1]  # type: ignore[arg-type]
        for world in (None, ["drift=step:101:reversed"], {"drift": step(101, "reversed")})
    )
    assert plain != by_text == by_object
    with pytest.raises(ArgumentError, match="world: drift: 'sideways' is no drift"):
        saferank.simulate(instances, **options, world="drift=sideways")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="lifetime"):
        saferank.simulate(instances, **options, lifetime=0)  # type: ignore[arg-type]
