"""Averages over instances."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from saferank.reporting.frames import means_of
from saferank.reporting.pooling import endings_table, pooled
from saferank.simulation.results import Result
from saferank.table import look_of

ONE = Result(
    instance="q1",
    model="pbm",
    policy="kl-ucb-br",
    rule="paper:1/T",
    positions=5,
    items=10,
    repetitions=9,
    rounds=[1, 10],
    regret_mean=[1.0, 10.0],
    regret_stderr=[0.3, 3.0],
    violations_mean=[0.0, 2.0],
    violations_stderr=[0.0, 0.6],
    wrong_certificates_mean=[0.0, 1.0],
)
OTHER = replace(
    ONE,
    instance="q2",
    regret_mean=[3.0, 20.0],
    regret_stderr=[0.4, 4.0],
    violations_stderr=[0.0, 0.8],
    wrong_certificates_mean=[0.0, 0.0],
)


def test_means_are_averaged_and_errors_added_in_squares() -> None:
    (curve,) = pooled(means_of([ONE, OTHER]))
    assert (curve.model, curve.policy, curve.instances) == ("pbm", "kl-ucb-br", 2)
    assert curve.regret.mean.tolist() == [2.0, 15.0]
    assert curve.regret.stderr == pytest.approx([0.25, 2.5])
    assert curve.regret.across == pytest.approx([1.0, 5.0])  # half the distance of two queries
    assert curve.regret.freedom == pytest.approx(8 * 25**2 / (9**2 + 16**2))
    assert curve.violations.mean.tolist() == [0.0, 2.0]
    assert curve.violations.stderr == pytest.approx([0.0, 0.5])
    assert curve.wrong_certificates is not None
    assert curve.wrong_certificates.tolist() == [0.0, 0.5]


def test_models_stay_together_in_the_order_of_their_first_result() -> None:
    mixed = [replace(ONE, model=model, policy=policy) for policy in ("b", "a") for model in ("pbm", "cm")]
    assert [(curve.model, curve.policy) for curve in pooled(means_of(mixed))] == [
        ("pbm", "b"),
        ("pbm", "a"),
        ("cm", "b"),
        ("cm", "a"),
    ]


def test_what_an_instance_does_not_have_the_average_has_not() -> None:
    single = replace(ONE, regret_stderr=[None, None], violations_stderr=[None, None], wrong_certificates_mean=None)
    (curve,) = pooled(means_of([single, replace(single, instance="q2")]))
    assert curve.regret.stderr is None
    assert curve.regret.across is not None and curve.regret.across.tolist() == [0.0, 0.0]
    assert curve.violations.stderr is None
    assert curve.wrong_certificates is None


@pytest.mark.parametrize("stranger", [replace(OTHER, rounds=[1, 11]), replace(OTHER, rule="anytime:1e-3")])
def test_results_of_different_runs_are_not_averaged(stranger: Result) -> None:
    with pytest.raises(ValueError, match="kl-ucb-br under pbm differ"):
        pooled(means_of([ONE, stranger]))


def test_bands_are_of_95_percent_within_and_across_queries() -> None:
    (curve,) = pooled(means_of([ONE, OTHER]))
    inner, outer = curve.regret.bands(2)
    assert inner == pytest.approx(np.array([0.25, 2.5]) * t.ppf(0.975, curve.regret.freedom))
    assert outer == pytest.approx(np.array([1.0, 5.0]) * t.ppf(0.975, 1))
    (alone,) = pooled(means_of([ONE]))
    assert len(alone.regret.bands(1)) == 1  # a single query says nothing of others


@pytest.mark.parametrize(("other", "bold"), [(10.5, True), (30.0, False)])
def test_what_is_not_clearly_above_the_least_regret_is_bold_too(other: float, bold: bool) -> None:
    curves = pooled(means_of([ONE, replace(ONE, policy="b", regret_mean=[1.0, other])]))
    table = endings_table(curves, ["kl-ucb-br", "b"], ["pbm"], str, "x")
    assert [look_of(row[1]) == "best" for row in table.rows] == [True, bold]
