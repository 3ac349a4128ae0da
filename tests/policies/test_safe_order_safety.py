"""No page of safe-order is unsafe under any order of the items that its certificates leave possible."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.instances.embedded import embedded_instances
from saferank.safety import allowance
from saferank.simulation.experiment import Plan, cells_of, run
from tests.policies.worst_pages import excesses, excesses_among_those_present


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5).flatmap(lambda n_items: st.tuples(st.just(n_items), st.integers(1, n_items))),
    st.sampled_from(["paper:0.3", "anytime:0.1"]),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.1, 0.3]),
)
def test_no_page_is_unsafe_in_any_order_that_the_certificates_allow(
    size: tuple[int, int], rule: str, seed: int, noise: float
) -> None:
    assert all(excess <= allowance(*size) for excess in excesses("safe-order", *size, rule, seed, 80, noise))


@pytest.mark.parametrize("size", [(5, 3), (5, 5), (5, 4), (4, 2)], ids=str)
def test_the_bound_is_reached_and_one_pair_more_would_break_it(size: tuple[int, int]) -> None:
    """So the budget is not smaller than it must be, and the test above could fail."""
    earned = [excess for seed in range(8) for excess in excesses("safe-order", *size, "paper:0.3", seed, 60, 0.1)]
    assert max(earned) == int(allowance(*size))
    given = [
        excess for seed in range(8) for excess in excesses("safe-order", *size, "paper:0.3", seed, 60, 0.1, gift=1)
    ]
    assert max(given) > allowance(*size)


def test_the_same_with_six_items() -> None:
    for seed, n_positions in enumerate([2, 3, 4, 6]):
        found = excesses("safe-order", 6, n_positions, "paper:0.3", seed, 80, 0.0)
        assert len(found) == 80
        assert max(found) <= allowance(6, n_positions)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 6).flatmap(lambda n_items: st.tuples(st.just(n_items), st.integers(1, n_items - 1))),
    st.sampled_from(["paper:0.3", "anytime:0.1"]),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.1]),
)
def test_no_page_is_unsafe_beside_production_s_ranking_closed_up_while_items_come_and_go(
    size: tuple[int, int], rule: str, seed: int, noise: float
) -> None:
    """``excesses_among_those_present`` is relative to the allowance of the items that are here."""
    beyond = excesses_among_those_present("safe-order", *size, rule, seed, 120, noise)
    assert all(excess <= 0 for excess in beyond)


@pytest.mark.parametrize("n_positions", [1, 5, 10])
@pytest.mark.parametrize("rule", ["paper:1e-5", "anytime:1e-5"])
def test_no_violation_and_no_wrong_certificate_under_any_click_model(n_positions: int, rule: str) -> None:
    """24 runs of 20,000 rounds. By the union bound over 45 pairs each, at most 1e-5 a pair, one of them holds a wrong
    certificate with probability at most 0.011, in fact far below; the seed is fixed.
    """
    plan = Plan(("safe-order",), n_positions, rounds=20_000, repetitions=1, rule=rule, seed=4)
    cells = cells_of(embedded_instances(queries=4), plan)
    assert len(cells) == 24
    for cell in cells:
        _, violations, wrong, *_ = run(cell, 0)[-1]
        assert (violations, wrong) == (0, 0), cell.instance.id
