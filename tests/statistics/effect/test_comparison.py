"""Folding pages: the sums, what is counted, merging, refusals."""

import numpy as np
import pytest

from saferank.errors import ArgumentError
from saferank.statistics.effect import ArmComparison, difference, from_numbers, merged, new_comparison, with_page
from saferank.verbs import Flags, Floats
from tests.statistics.effect.simulated_pages import looks_of


def folded(held_out: Flags, outcome: Floats, share: float, most: float = 1.0) -> ArmComparison:
    state = new_comparison()
    for hidden, value in zip(held_out, outcome, strict=True):
        state = with_page(state, served=not hidden, outcome=float(value), share=share, most=most)
    return state


def coins(n: int, share: float, seed: int) -> tuple[Flags, Floats]:
    rng = np.random.default_rng(seed)
    return rng.random(n) < share, rng.binomial(4, 0.2, n).astype(float)


def test_the_arrays_of_the_simulations_are_the_fold_page_by_page() -> None:
    held_out, outcome = coins(300, 0.2, 1)
    looks = looks_of(held_out[None], outcome[None], 0.2, 4.0)
    state = folded(held_out, outcome, 0.2, 4.0)
    assert looks.holdout[0, -1] == pytest.approx(state.expected + state.holdout.score)
    assert looks.served[0, -1] == pytest.approx(state.expected + state.served.score)
    assert looks.variance[0, -1] == pytest.approx(state.holdout.square + state.served.square)
    assert looks.weight[0, -1] == pytest.approx(state.weight)


def test_arms_keep_pages_and_outcomes() -> None:
    held_out, outcome = coins(500, 0.3, 2)
    state = folded(held_out, outcome, 0.3, 4.0)
    assert (state.holdout.pages, state.holdout.total) == (held_out.sum(), outcome[held_out].sum())
    assert state.served.mean == pytest.approx(outcome[~held_out].mean())
    assert np.isnan(new_comparison().served.mean)


def test_ten_numbers_are_the_whole_state() -> None:
    state = folded(*coins(50, 0.1, 3), 0.1, 4.0)
    assert len(state.numbers()) == 10
    assert from_numbers(list(state.numbers())) == state
    with pytest.raises(ArgumentError, match="found 3, expected the 10"):
        from_numbers([1, 2, 3])


def test_merging_adds_sums_in_any_order() -> None:
    states = [folded(*coins(200, 0.1, seed), 0.1, 4.0) for seed in range(4)]
    whole = merged(*states)
    assert whole == merged(*reversed(states))
    assert whole.served.pages == sum(state.served.pages for state in states)
    assert merged() == new_comparison()


def test_merged_contexts_with_other_shares_are_immune_to_simpsons_paradox() -> None:
    """A context with many clicks and half its pages in the holdout, one with few clicks and a tenth: in both the arms
    are equal. Plain means over all pages differ by 15 points; the merged comparison does not."""
    rng = np.random.default_rng(5)
    states = []
    for share, rate in ((0.5, 0.6), (0.1, 0.1)):
        states.append(folded(rng.random(4000) < share, (rng.random(4000) < rate).astype(float), share))
    whole = merged(*states)
    assert whole.holdout.mean - whole.served.mean > 0.15
    found = difference(whole)
    assert found.low <= 0 <= found.high and abs(found.estimate) < 0.03 and found.high - found.low < 0.12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share": 0.0}, "share: found 0, expected a holdout share above 0 and at most 1/2"),
        ({"share": 0.6}, "share: found 0.6"),
        ({"outcome": 2}, "outcome: found 2, expected a number from 0 to 1"),
        ({"outcome": float("nan")}, "outcome: found nan"),
        ({"most": 0.5}, "most: found 0.5, expected the largest outcome"),
    ],
)
def test_what_cannot_be_counted_is_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        with_page(new_comparison(), **{"served": True, "outcome": 1, "share": 0.1, **given})  # type: ignore[arg-type]
