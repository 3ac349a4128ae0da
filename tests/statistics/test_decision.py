"""The decision rules equal the transcription; the anytime table errs as rarely as it promises, exactly computed."""

import functools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saferank.statistics.decision import NEVER, decision_rule, top_rank_rule
from saferank.verbs import Ints
from tests.reference import decision as reference

martingale = functools.cache(reference.anytime_m)


@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-5, 1e-20])
def test_the_paper_rule_equals_the_reference(delta: float) -> None:
    rule = decision_rule(f"paper:{delta}")
    for n in range(301):
        for s in range(-n, n + 1, 2):
            assert rule.decides(s, n) == reference.paper_decides(s, n, delta), (s, n)


@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-5])
def test_the_rule_of_top_rank_equals_the_reference(delta: float) -> None:
    rule = top_rank_rule(delta)
    for n in range(301):
        for s in range(-n, n + 1, 2):
            assert rule.decides(s, n) == reference.toprank_adds_edge(s, n, delta), (s, n)


@pytest.mark.parametrize("alpha", [0.1, 1e-2, 1e-5])
def test_the_anytime_rule_equals_the_reference(alpha: float) -> None:
    rule = decision_rule(f"anytime:{alpha}")
    for n in range(1, 101):
        for s in range(-n, n + 1, 2):
            assert rule.decides(s, n) == (martingale(s, n) >= 1 / Fraction(alpha)), (s, n)


@pytest.mark.parametrize("alpha", [0.1, 1e-2, 1e-5])
def test_the_anytime_rule_equals_the_reference_on_both_sides_of_its_boundary(alpha: float) -> None:
    """The martingale grows with s, so the two sides of the boundary settle every s."""
    table = decision_rule(f"anytime:{alpha}").table(300)
    for n in range(101, 301):
        lead = int(table[n])
        assert martingale(lead - 2, n) < 1 / Fraction(alpha) <= martingale(lead, n), n


@given(st.integers(1, 2000), st.floats(0, 1), st.sampled_from([0.1, 1e-2, 1e-3, 1e-5]))
@settings(max_examples=60, deadline=None)
def test_both_rules_equal_the_reference_at_random(n: int, share: float, level: float) -> None:
    s = 2 * round(share * n) - n
    assert decision_rule(f"paper:{level}").decides(s, n) == reference.paper_decides(s, n, level)
    assert decision_rule(f"anytime:{level}").decides(s, n) == reference.anytime_decides(s, n, level)


def error_of(leads: Ints) -> float:
    """The probability that a fair +-1 walk, which dominates every null walk, ever reaches the leads by n.

    Exact but for rounding: the distribution of the walks that have not crossed yet, by their number of wins.
    """
    largest, crossed = len(leads) - 1, 0.0
    alive = np.zeros(largest + 2)
    alive[0] = 1.0
    for n in range(1, largest + 1):
        alive[1 : n + 1] += alive[:n]
        alive[: n + 1] /= 2
        enough = (n + int(leads[n]) + 1) // 2
        crossed += float(alive[enough : n + 1].sum())
        alive[enough : n + 1] = 0.0
    return crossed


def leads_of(rule: str, largest_n: int) -> Ints:
    return decision_rule(rule).table(largest_n)[: largest_n + 1]


def test_the_error_of_a_boundary_is_computed_rightly() -> None:
    """A lead of 2 within 3 steps: up-up at once, probability 1/4, cannot be reached later within 3."""
    assert error_of(np.array([NEVER, 2, 2, 2])) == 1 / 4
    assert error_of(np.array([NEVER, 1, 1, 1])) == 1 / 2 + 1 / 8  # up; down-up-up
    assert error_of(np.array([NEVER, NEVER, NEVER])) == 0


@pytest.mark.parametrize("alpha", [1e-2, 1e-3, 1e-5])
def test_the_anytime_table_errs_with_probability_at_most_alpha(alpha: float) -> None:
    """Up to n = 20,000, where 80 to 85 % of alpha are used up; one win fewer at every n would be too many errors."""
    leads = leads_of(f"anytime:{alpha}", 20_000)
    assert 0.8 * alpha < error_of(leads) <= alpha
    assert error_of(np.where(leads < NEVER, leads - 2, NEVER)) > 1.2 * alpha


def test_the_paper_rule_errs_far_less_than_its_delta() -> None:
    """The document's figure, 7.3e-10 for delta = 1e-5, is the probability up to n = 1e5."""
    assert error_of(leads_of("paper:1e-5", 100_000)) == pytest.approx(7.3e-10, rel=0.01)


def test_one_sided_pairs_are_decided_at_the_documented_n() -> None:
    for rule, n in [
        (decision_rule("paper:1e-5"), 47),
        (decision_rule("paper:1e-20"), 185),
        (top_rank_rule(1e-5), 29),
    ]:
        assert rule.decides(n, n)
        assert not rule.decides(n - 1, n - 1)


def test_one_over_the_horizon_is_a_level() -> None:
    assert decision_rule("anytime:1/T", horizon=1000) is decision_rule("anytime:1e-3")
    assert decision_rule("paper:1/T", horizon=1).level == 1 / 2
    assert decision_rule(decision_rule("paper:1e-5").name) is decision_rule("paper:1e-5")
    assert repr(decision_rule("paper:0.5")) == "decision_rule('paper:0.5')"


def test_a_table_grows_without_changing_and_cannot_be_written() -> None:
    rule = decision_rule("anytime:0.037")
    short, long = rule.table(0).copy(), rule.table(10_000)
    assert len(long) > 10_000
    assert np.array_equal(long[: len(short)], short)
    assert long[0] == NEVER
    with pytest.raises(ValueError, match="read-only"):
        long[1] = 0


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bayes:0.1", "unknown decision rule 'bayes:0.1'; write paper:DELTA, anytime:ALPHA or budget:ALPHA"),
        ("paper", "unknown decision rule 'paper'"),
        ("", "unknown decision rule ''"),
        ("paper:", "the level of decision rule 'paper:' is not a number"),
        ("paper:small", "the level of decision rule 'paper:small' is not a number"),
        ("paper:0", "the level of decision rule 'paper:0' must lie between 0 and 1"),
        ("anytime:1", "must lie between 0 and 1"),
        ("anytime:-1e-3", "must lie between 0 and 1"),
        ("anytime:nan", "must lie between 0 and 1"),
        ("paper:1/T", "'paper:1/T' needs a horizon; give a number instead, for example paper:1e-5"),
    ],
)
def test_a_bad_name_is_a_clear_error(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        decision_rule(name)


def test_a_bad_level_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match=r"must lie between 0 and 1, not 1\.5"):
        top_rank_rule(1.5)


@pytest.mark.parametrize(("s", "n"), [(3, 2), (-3, 2), (1, 2), (0, -2)])
def test_an_impossible_duel_is_a_clear_error(s: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"impossible duel: s={s}, n={n}"):
        decision_rule("paper:0.1").decides(s, n)


@pytest.mark.parametrize("level", ["1e-300", "1e-310", "5e-324"])
@pytest.mark.parametrize("kind", ["paper", "anytime"])
def test_a_tiny_level_makes_a_rule_harder_never_void(kind: str, level: str) -> None:
    """One over such a level overflows; the rule must not."""
    rule, looser = decision_rule(f"{kind}:{level}"), decision_rule(f"{kind}:1e-30")
    assert not rule.decides(1, 1) and not rule.decides(-1, 1)
    assert np.all(rule.table(5000)[1:] >= looser.table(5000)[1 : len(rule.table(5000))])
    assert np.all(top_rank_rule(float(level)).table(5000)[1:] > 0)


def test_one_far_n_is_decided_without_a_table_up_to_it() -> None:
    rule = decision_rule("paper:1e-4")
    before = len(rule.table(0))
    assert rule.decides(10**7, 10**9) and not rule.decides(100, 10**9)
    assert len(rule.table(0)) == before
    with pytest.raises(ValueError, match="whole numbers"):
        rule.decides(47.0, 47.0)  # type: ignore[arg-type]


def test_a_budget_is_shared_evenly_by_the_pairs_of_a_catalogue() -> None:
    shared, one = decision_rule("budget:0.045"), decision_rule("anytime:0.001")
    assert shared.for_items(10).table(100).tolist()[:100] == one.table(100).tolist()[:100]
    assert shared.for_items(10).name == "budget:0.045" and one.for_items(10) is one
    assert shared.for_items(1).table(50).tolist()[:50] == decision_rule("anytime:0.045").table(50).tolist()[:50]
