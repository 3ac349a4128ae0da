"""Every array of whole numbers of a state has a rule, and a number that breaks it is named."""

from typing import Any

import numpy as np
import pytest

from saferank import Ranker, SavedStateError
from saferank.live.learner import Learner
from saferank.live.ranges import FIELDS, RULES, Extent
from saferank.policies import POLICIES
from saferank.saved_state import from_bytes, to_bytes
from tests.acceptance.crafted_rankers import forms


def learner_of(form: dict[str, Any]) -> Learner:
    options = {name: form[name] for name in ("lifetime", "examination")}
    return Learner(form["policy"], original=range(3), candidates=range(3, form["n"]), **options)


def without_rule(record: Any, n: Extent, path: str) -> list[str]:
    """The arrays of whole numbers of a record for which there is no rule."""
    known = RULES[type(record).__name__](record, n) if type(record).__name__ in RULES else {}
    known |= {} if path else FIELDS
    missing = []
    for name, part in zip(record._fields, record, strict=True):
        if isinstance(part, tuple):
            missing += without_rule(part, n, f"{path}{name}.")
        elif part.dtype.kind in "iu" and name not in known:
            missing.append(f"{path}{name}")
    return missing


@pytest.mark.parametrize("form", forms(), ids=str)
def test_every_array_of_whole_numbers_has_a_rule(form: dict[str, Any]) -> None:
    learner = learner_of(form)
    sizes = Extent(form["n"], 3, np.ones(form["n"], np.bool_), 0)
    plan = learner.plan(learner.call(range(3), range(3, form["n"])), 0)
    assert not without_rule(learner.evidence, sizes, "")
    assert learner.kind.plan_is_derived or not without_rule(plan, sizes, "")


@pytest.mark.parametrize(
    ("policy", "name", "number"),
    [
        ("bubble-rank", "plan.n_eligible", -1),
        ("kl-ucb-br", "plan.leaders.current", 300),
        ("kl-ucb-br", "evidence.duels.pairs.wins", -1),
        ("kl-ucb-br", "evidence.duels.certificates.first", 1),
        ("top-rank", "plan.blocks.end", 0),
        ("batch-rank", "plan.seats", 1),
        ("safe-draw", "evidence.duels.kinds", 4),
        ("safe-draw", "evidence.trust.came", 7),
    ],
)
def test_a_number_that_cannot_be_is_named(policy: str, name: str, number: int) -> None:
    facts, arrays = from_bytes(Ranker(policy, original=range(3), candidates=range(3, 6)).save())
    arrays[name].reshape(-1)[:] = number
    with pytest.raises(
        SavedStateError, match=rf"{name.partition('.')[2]} of the saved state holds a number that it cannot have"
    ):
        Ranker.load(to_bytes(facts, arrays))


def test_what_is_certain_does_not_contradict_itself() -> None:
    """A circle in the closure would send the derivation of a leader round in it for good."""
    facts, arrays = from_bytes(Ranker("safe-draw", original=range(3), candidates=range(3, 30)).save())
    closure = {name: arrays[f"evidence.duels.closure.{name}"] for name in ("number", "item", "worse", "size")}
    closure["number"][:2], closure["item"][:2], closure["size"][:] = [0, 1], [0, 1], 2
    closure["worse"][0] = 0b10
    Ranker.load(to_bytes(facts, arrays))
    closure["worse"][1] = 0b01
    with pytest.raises(SavedStateError, match=r"closure.worse of the saved state"):
        Ranker.load(to_bytes(facts, arrays))


def test_every_policy_is_crafted() -> None:
    assert {form["policy"] for form in forms()} == set(POLICIES)
    assert np.all([form["n"] > 3 for form in forms()])
