"""Hyper-parameters in the names of policies."""

from typing import NamedTuple

import pytest

from saferank.policies import Setup, policy_kind
from saferank.policies.shared.settings import in_name, parse_settings, settable
from saferank.verbs import Ints


class Tuned(NamedTuple):
    """Hyper-parameters of every kind."""

    table: Ints
    width: int
    level: float
    brave: bool = False


def test_numbers_and_flags_can_be_set_and_tables_cannot() -> None:
    assert settable(Tuned) == {"width": int, "level": float, "brave": bool}
    assert settable(policy_kind("kl-ucb-br").policy) == {}


def test_texts_become_values_of_the_right_type() -> None:
    values = parse_settings("tuned", Tuned, ["width=3", "level=1e-3", "brave=True"])
    assert values == {"width": 3, "level": 0.001, "brave": True}
    assert type(values["width"]) is int
    assert in_name(values) == "width=3:level=0.001:brave=true"


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["depth=3"], "tuned has no hyper-parameter 'depth'; it has width, level, brave"),
        (["table=3"], "tuned has no hyper-parameter 'table'; it has width, level, brave"),
        (["width=2.5"], "tuned: width is '2.5', expected a whole number"),
        (["level=high"], "tuned: level is 'high', expected a number"),
        (["brave=1"], "tuned: brave is '1', expected true or false"),
        (["width=1", "width=2"], "tuned: width is there twice; keep one"),
    ],
)
def test_what_cannot_be_set_is_a_sentence(texts: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_settings("tuned", Tuned, texts)


def test_a_name_with_values_is_the_policy_with_these_values() -> None:
    kind = policy_kind("bubble-rank:hidden_duels=False:all_candidates=true")
    assert kind.name == "bubble-rank:hidden_duels=false:all_candidates=true"
    policy, _ = kind.begin(Setup(6, 3))
    assert (policy.hidden_duels, policy.all_candidates) == (False, True)
    assert policy_kind(kind.name).name == kind.name
    with pytest.raises(ValueError, match="kl-ucb-br has no hyper-parameter 'x'; it has none that can be set"):
        policy_kind("kl-ucb-br:x=1")
    with pytest.raises(ValueError, match="unknown policy 'nobody:x=1'; known ones: "):
        policy_kind("nobody:x=1")
