"""The study of a wrong model: roles, means, and the two standard errors by hand."""

import numpy as np
import pytest

from saferank.instances import embedded_instances
from saferank.policies import POLICIES as POLICY_KINDS
from saferank.simulation.engine import simulate
from saferank.simulation.experiment import Plan, cells_of
from saferank.simulation.model_study import lines_of, role_of, when_the_model_is_wrong

POLICIES = ("pbm-ucb", "original")
INSTANCES = embedded_instances(3, models=("pbm", "cm"))


def test_every_policy_under_every_model_has_a_line_with_its_role() -> None:
    lines = when_the_model_is_wrong(INSTANCES, policies=POLICIES, rounds=200, repetitions=2)
    assert [(line.policy, line.model, line.role) for line in lines] == [
        ("pbm-ucb", "pbm", "matching"),
        ("original", "pbm", "original"),
        ("pbm-ucb", "cm", "foreign"),
        ("original", "cm", "original"),
    ]
    assert {(line.queries, line.repetitions) for line in lines} == {(3, 2)}


def test_roles_are_what_policies_are_registered_as() -> None:
    """Also those of policies that the published study leaves out, of variants, and of plug-ins that are not loaded."""
    roles = {name: role_of(name, "cm") for name in POLICY_KINDS}
    assert {name for name, role in roles.items() if role == "safe"} == {"kl-ucb-br", "bubble-rank", "safe-draw"}
    assert roles["cascade-kl-ucb"] == "matching" and roles["pbm-ts"] == roles["pbm-ucb"] == "foreign"
    assert roles["top-rank"] == role_of("somebody-elses", "cm") == "agnostic"
    assert role_of("bubble-rank:shown-only", "cm") == "safe"


def test_the_errors_are_those_over_repetitions_and_over_queries() -> None:
    plan = Plan(("pbm-ucb",), 5, 300, 4, checkpoints=(300,))
    results = simulate(cells_of(embedded_instances(3, models=("cm",)), plan))
    (line,) = lines_of(results)
    means = np.array([result.regret_mean[-1] for result in results])
    errors = np.array([result.regret_stderr[-1] for result in results], np.float64)
    assert line.regret.mean == pytest.approx(means.mean())
    assert line.regret.within == pytest.approx(np.sqrt((errors**2).sum()) / 3)
    assert line.regret.across == pytest.approx(means.std(ddof=1) / np.sqrt(3))


def test_a_single_run_has_no_error_within() -> None:
    (line,) = when_the_model_is_wrong(INSTANCES[:1], policies=("original",), rounds=50, repetitions=1)
    assert line.regret.within is None and line.regret.across is None
