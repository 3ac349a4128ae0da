"""What is asked for becomes a protocol: our own policies are an addition that can be left out."""

import inspect
from dataclasses import fields
from typing import Any

import pytest

from saferank import reproduce
from saferank.cli import app
from saferank.cli.terminal.options import learn_options
from saferank.errors import ArgumentError
from saferank.policies import policies_of
from saferank.reproduction.protocol import Protocol

PAPER, OURS = policies_of("paper"), policies_of("ours")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, PAPER + OURS),
        ({"without": ("additions",)}, PAPER),
        ({"without": ("study", "additions")}, PAPER),
        ({"policies": ("kl-ucb-br", "top-rank")}, ("kl-ucb-br", "top-rank")),
    ],
)
def test_ours_are_played_beside_the_papers_unless_asked_otherwise(
    changes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert Protocol(**changes).checked().policies == expected


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(ArgumentError, match="unknown part 'dessert'; known ones: additions, sensitivity, study"):
        Protocol(without=("dessert",)).checked()


def test_additions_that_do_not_take_the_rule_are_left_out() -> None:
    policies = Protocol(rule="paper:0.01").checked().policies
    assert policies is not None and "kl-ucb-br" in policies and "safe-draw" not in policies


def test_arguments_are_spelt_once() -> None:
    names = [each.name for each in fields(Protocol)]
    assert [name for name in inspect.signature(reproduce).parameters if name in names] == names
    learn_options(app, ["reproduce"])
    (command,) = [each.callback for each in app.registered_commands if each.name == "reproduce"]
    options = inspect.signature(command or reproduce).parameters
    assert set(names) <= options.keys()
    for name in ("profile", "rule", "positions", "items", "rounds", "iterations", "seed", "max_bad", "queries", "log"):
        assert options[name].default == getattr(Protocol(), name)
    with pytest.raises(TypeError, match=r"takes no 'roundz'.*did you mean 'rounds'"):
        reproduce("nowhere", roundz=7)


def test_another_world_is_played_in_every_part_and_kept_in_the_facts() -> None:
    protocol = Protocol.of({"world": ["delay=3", "reward=dcg"]})
    assert protocol.plan().world == protocol.plan(2, rule="paper:0.1").world == protocol.facts()["world"]
    assert protocol.facts()["world"] == "delay:3,reward:dcg"
    assert Protocol.of({}).facts()["world"] is None
    with pytest.raises(ArgumentError, match=r"world: unknown part 'delya'; .*did you mean 'delay'"):
        Protocol.of({"world": {"delya": 3}})
