"""Worlds beyond the paper's: whole runs against a transcription; switched off, nothing changes."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import saferank
from saferank.click_models import CM, PBM
from saferank.errors import ArgumentError
from saferank.instances import Instance
from saferank.simulation.experiment import Plan, cells_of, run
from saferank.simulation.feedback import LateFeedback, layout_of
from saferank.simulation.rewards import best_of, reward, reward_of
from saferank.simulation.worlds import world_of
from tests.cli.command_line import environment
from tests.reference.decision import paper_decides
from tests.reference.randomness import Xoshiro
from tests.reference.safety import best_reward
from tests.reference.users import click_models as literal_users
from tests.reference.users import other_worlds as literal
from tests.reference.users.late_feedback import late_policy

ATTRACTION = [0.2, 0.7, 0.1, 0.45, 0.9]
EXAMINATION = [0.9, 0.6, 0.5]
ROUNDS = 400
PLAN = Plan(("bubble-rank",), 3, ROUNDS, 1, "paper:0.3", seed=5, checkpoints=tuple(range(1, ROUNDS + 1)))
USERS = {"pbm": PBM(np.array(ATTRACTION), np.array(EXAMINATION)), "cm": CM(np.array(ATTRACTION))}
SLOW: dict[str, Any] = {"pbm": literal_users.PBM(ATTRACTION, EXAMINATION), "cm": literal_users.CM(ATTRACTION)}
WEIGHTS = [1.0, 0.2, 0.7]

WORLDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "delay": ({"feedback": LateFeedback(delay=7)}, {"delays": literal.fixed(7)}),
    "geometric": ({"feedback": LateFeedback(delay="geometric:3")}, {"delays": literal.geometric(3.0, 80)}),
    "lost pages": ({"feedback": LateFeedback(lost_pages=0.4)}, {"delays": [1.0], "lost_pages": 0.4}),
    "lost clicks": (
        {"feedback": LateFeedback(delay=2, lost_clicks=0.3)},
        {"delays": literal.fixed(2), "lost_clicks": 0.3},
    ),
    "layout": ({"layout": (2, 3, 1)}, {"delays": [1.0], "layout": [1, 2, 0]}),
    "dcg": ({"reward": "dcg"}, {"delays": [1.0], "reward": literal.dcg}),
    "weights": ({"reward": "weights:1,0.2,0.7"}, {"delays": [1.0], "reward": literal.weighted(WEIGHTS)}),
}


def only_cell(model: str, policy: str = "bubble-rank", **changes: Any) -> Any:
    instance = Instance("late", USERS[model], model, tuple("abcde"))
    (cell,) = cells_of([instance], replace(PLAN, policies=(policy,), **changes))
    return cell


@pytest.mark.parametrize("name", WORLDS)
def test_a_run_equals_the_transcription_round_by_round(name: str) -> None:
    """Violations and wrong certificates exactly, reward up to rounding, for the transcription enumerates."""
    changes, slow_changes = WORLDS[name]
    cell = only_cell("pbm", **changes)
    words = [Xoshiro(words.tolist()) for words in (*cell.streams(0), cell.feedback_stream(0))]
    policy = late_policy("bubble-rank", 5, 3, words[0], lambda s, n: paper_decides(s, n, 0.3))
    rows = np.array(literal.play(policy, SLOW["pbm"], words[1], words[2], ROUNDS, **slow_changes))
    fast = run(cell, 0)
    assert fast[:, 1:3].tolist() == rows[:, 1:3].tolist()
    assert np.allclose(fast, rows, atol=1e-9)


def test_switched_off_it_is_the_usual_world_to_the_last_digit() -> None:
    usual = run(only_cell("pbm"), 1)
    off = run(only_cell("pbm", feedback=LateFeedback(), layout=(1, 2, 3), reward="clicks"), 1)
    assert usual.tolist() == off.tolist()
    late = run(only_cell("pbm", feedback=LateFeedback(delay=5)), 1)
    assert usual.tolist() != late.tolist()


def test_no_delay_is_no_delay_however_it_is_written() -> None:
    for text in ("0", "0.0", 0):
        assert LateFeedback(delay=text) == LateFeedback()
        assert world_of({"delay": text})["feedback"] is None
    assert LateFeedback(delay="1e1") == LateFeedback(delay=10)
    assert str(LateFeedback(delay="10")) == "delay:10"


EVERY_POLICY = """
from dataclasses import replace
from saferank.instances.embedded import embedded_instances
from saferank.policies import POLICIES
from saferank.simulation.experiment import Plan, cells_of, run
from saferank.simulation.feedback import LateFeedback
instance = embedded_instances(3, models=("pbm",))[2]
for name, kind in POLICIES.items():
    plan = Plan((name,), 5, 50, 1, kind.default_rule("0.9"), checkpoints=(50,))
    worlds = [replace(plan, feedback=feedback) for feedback in (None, LateFeedback(), LateFeedback(delay=9))]
    usual, off, late = (run(cells_of([instance], each)[0], 0).tolist() for each in worlds)
    print(name, usual == off, usual != late)
"""


def test_every_policy_plays_the_same_when_it_is_switched_off_and_takes_late_pages() -> None:
    """Without the compiler, which would take minutes; nine pages late changes what a policy that learns shows."""
    command = [sys.executable, "-c", EVERY_POLICY]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(NUMBA_DISABLE_JIT="1"), check=True)
    found = {name: (same, differs) for name, same, differs in map(str.split, done.stdout.splitlines())}
    assert set(found) >= {"kl-ucb-br", "bubble-rank", "top-rank", "uni-rank", "safe-draw"}
    assert {name for name, (same, _) in found.items() if same == "False"} == set()
    assert {name for name, (_, differs) in found.items() if differs == "False"} <= {"original"}


def test_nothing_is_learnt_when_everything_is_lost() -> None:
    """No duel is ever recorded, so no certificate is given and the leader stays the original."""
    cell = only_cell("pbm", feedback=LateFeedback(lost_pages=1.0), rule="paper:0.9")
    lost, usual = run(cell, 0), run(only_cell("pbm", rule="paper:0.9"), 0)
    assert lost[-1, 2] == 0 < usual[-1, 2]


def test_runs_do_not_depend_on_the_length_of_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = only_cell("pbm", feedback=LateFeedback(delay="geometric:3"))
    expected = run(cell, 0)
    monkeypatch.setattr("saferank.simulation.experiment.FIRST_SEGMENT", 7)
    monkeypatch.setattr("saferank.simulation.experiment.SEGMENT_SECONDS", 1e-6)
    assert run(cell, 0).tolist() == expected.tolist()


def test_delays_have_their_mean() -> None:
    """The expectation of a delay is the sum over j of P(delay > j); the cut takes less than 1e-6 of it."""
    assert sum(1 - LateFeedback(delay="geometric:10").delays()) == pytest.approx(10, abs=1e-6)
    assert sum(1 - LateFeedback(delay=4).delays()) == 4


@pytest.mark.parametrize("model", ["pbm", "cm"])
@pytest.mark.parametrize("text", ["clicks", "dcg", "weights:1,0.2,0.7"])
def test_rewards_and_the_best_of_them_equal_the_transcription(model: str, text: str) -> None:
    slow = {"clicks": literal_users.expected_clicks, "dcg": literal.dcg}.get(text, literal.weighted(WEIGHTS))
    kind = reward_of(text, 3)
    for shown in ([0, 1, 2], [4, 3, 1], [2, 4, 0]):
        value = reward(kind, USERS[model], np.array(shown, np.uint32))
        assert value == pytest.approx(slow(SLOW[model], shown), rel=1e-12)
    best = best_reward(5, 3, lambda shown: slow(SLOW[model], shown))
    assert best_of(kind, USERS[model], 3) == pytest.approx(best, rel=1e-12)


def test_a_policy_may_be_told_another_examination_than_the_truth() -> None:
    told = only_cell("pbm", "pbm-ucb", examination=(1.0, 1.0, 1.0))
    assert told.setup.examination == (1.0, 1.0, 1.0)
    assert only_cell("pbm", "pbm-ucb").setup.examination == tuple(EXAMINATION)
    assert told.world.model.examination.tolist() == EXAMINATION


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delay": -1}, "world: delay: found -1, expected a whole number of pages"),
        ({"delay": "soon"}, "delay: found 'soon', expected a whole number of pages up to 100000 or geometric:MEAN"),
        ({"delay": "geometric:0"}, "delay: found geometric:0, expected a mean above 0"),
        ({"lost_pages": 1.5}, "lost_pages: found 1.5, expected a probability from 0 to 1"),
        ({"lost_clicks": -0.1}, "lost_clicks: found -0.1"),
        ({"layout": (1, 1, 2)}, "layout: found 1,1,2, expected each of the positions 1 to 3 once"),
        ({"reward": "money"}, "reward: found 'money', expected clicks, dcg or weights:"),
        ({"reward": "weights:1,2"}, "reward: found 'weights:1,2', expected 3 numbers that are not negative"),
        ({"examination": (0.5,)}, "examination: .*covers 1 positions, expected at least 3"),
    ],
)
def test_what_cannot_be_used_is_an_argument_error(changes: dict[str, Any], message: str) -> None:
    instance = Instance("late", USERS["pbm"], "pbm", tuple("abcde"))
    options: dict[str, Any] = {"rounds": 10, "repetitions": 1, "positions": 3, "jobs": 1, "progress": False}
    with pytest.raises(ArgumentError, match=message):
        saferank.simulate([instance], ["pbm-ucb"], **options, world=changes)


def test_results_name_their_world() -> None:
    instance = Instance("late", USERS["pbm"], "pbm", tuple("abcde"))
    options: dict[str, Any] = {"rounds": 10, "repetitions": 1, "positions": 3, "jobs": 1, "progress": False}
    made = saferank.simulate(
        [instance], ["bubble-rank"], **options, world={"delay": 7, "lost_pages": 0.25, "reward": "dcg"}
    )
    assert made.curves[0].world == "delay:7,lost-pages:0.25,reward:dcg"
    assert saferank.simulate([instance], ["bubble-rank"], **options).curves[0].world is None


def test_a_layout_is_by_place_of_the_screen() -> None:
    assert layout_of((2, 3, 1), 3).tolist() == [1, 2, 0]
