"""Verdicts on planted curves: what is true holds, what is false fails, a tie stays open, what is missing is not run."""

from dataclasses import replace
from pathlib import Path

import pytest

from saferank.reporting.claims import (
    ALL,
    FAILS,
    HOLDS,
    NONE_OF_BEST,
    OPTIMAL,
    PAPER,
    UNDECIDED,
    Claim,
    NotRun,
    Question,
    ends_below,
    judge_claims,
    never,
    places_of,
    some,
    stays_above,
    zero,
)
from saferank.reporting.frames import means_of
from saferank.reporting.looks import PAPER_MODELS
from saferank.reporting.numbers import Measured
from saferank.reporting.reading import Run
from saferank.reporting.readings import headline
from saferank.simulation.results import Result
from tests.reporting.planted import QUERIES, SPECIAL, true_results

Results = dict[tuple[str, str, str], Result]
ASKED = [(question, model) for question in PAPER for model in question.models or PAPER_MODELS]
IDS = [f"{question.place}-{question.text}-{model}" for question, model in ASKED]


def judged(results: Results) -> tuple[list[Claim], list[NotRun]]:
    return judge_claims(places_of(Run(Path("results.json"), means_of(list(results.values())), {}), SPECIAL))


def the(claims: list[Claim], question: Question, model: str) -> Claim:
    (claim,) = [claim for claim in claims if (claim.question, claim.model) == (question, model)]
    return claim


def ending(result: Result, regret: float | None = None, violations: float | None = None) -> Result:
    """The same curve with another end."""
    made = result
    if regret is not None:
        made = replace(made, regret_mean=[*made.regret_mean[:-1], regret])
    if violations is not None:
        made = replace(made, violations_mean=[*made.violations_mean[:-1], violations])
    return made


def planted_against(question: Question, model: str) -> Results:
    """True results with one thing changed, of which just this claim is plainly false under this model."""
    results = true_results()
    for query in QUERIES[question.place]:
        who = (query, model, question.who)
        other = 0.0 if question.than is None else results[query, model, question.than].regret_mean[-1]
        regret = {
            "ends below": 2 * other + 10,
            "improves clearly": 0.8 * other,
            "hardly improves": 0.5 * other,
            "has no regret": 5.0,
        }.get(question.says)
        violations = {"never violates": 0.01, "violates": 0.0}.get(question.says)
        results[who] = ending(results[who], regret, violations)
    return results


def test_every_claim_holds_where_it_is_true() -> None:
    claims, not_run = judged(true_results())
    assert [claim.sentence for claim in claims if claim.verdict != HOLDS] == []
    assert (len(claims), not_run) == (len(ASKED), [])
    assert headline(claims, "a log") == f"{len(ASKED)} of {len(ASKED)} claims of the paper hold on a log."


@pytest.mark.parametrize(("question", "model"), ASKED, ids=IDS)
def test_every_claim_fails_where_it_is_false_and_only_there(question: Question, model: str) -> None:
    claims, _ = judged(planted_against(question, model))
    assert the(claims, question, model).verdict == FAILS
    assert all(claim.verdict == HOLDS for claim in claims if claim.model != model)


@pytest.mark.parametrize(("question", "model"), [a for a in ASKED if a[0].says == "ends below"])
def test_a_tie_is_undecided(question: Question, model: str) -> None:
    results = true_results()
    for query in QUERIES[question.place]:
        other = results[query, model, question.than or ""].regret_mean[-1]
        results[query, model, question.who] = ending(results[query, model, question.who], regret=other)
    claim = the(judged(results)[0], question, model)
    assert (claim.verdict, claim.standard_errors) == (UNDECIDED, 0.0)


def test_single_repetitions_decide_only_what_needs_no_error() -> None:
    claims, _ = judged(true_results(stderr=None))
    decided = {claim.question.says for claim in claims if claim.verdict != UNDECIDED}
    assert decided == {"never violates", "has no regret"}
    assert all(claim.standard_errors is None for claim in claims if claim.verdict == UNDECIDED)


def test_what_was_not_run_gets_no_verdict() -> None:
    results = {key: result for key, result in true_results().items() if key[2] != "uni-rank"}
    claims, not_run = judged(results)
    assert all("UniRank" not in claim.sentence for claim in claims)
    missing = {f"there are no results of UniRank under {model}" for model in ("PBM", "CM")}
    assert {claim.reason for claim in not_run} == missing
    assert len(claims) + len(not_run) == len(ASKED)


def test_without_special_queries_only_claims_about_all_queries_are_judged() -> None:
    run = Run(Path("results.json"), means_of(list(true_results().values())), {})
    claims, not_run = judge_claims(places_of(run, {}))
    assert {claim.question.place for claim in claims} == {ALL}
    assert {claim.reason for claim in not_run} == {"the results do not say which query that is"}


def test_other_click_models_are_asked_the_same_but_are_not_the_papers() -> None:
    claims, not_run = judged(true_results(models=("dcm",)))
    assert {claim.model for claim in claims} == {"dcm"}
    assert not any(claim.of_the_paper for claim in claims)
    assert {claim.model for claim in not_run} == {"pbm", "cm"}


def test_a_query_that_is_not_quite_special_is_no_ground_for_claims_about_special_ones() -> None:
    special = {
        "optimal": {"instance": "best", "wrong_pairs": {"pbm": 0, "cm": 1}},
        "none_of_best": {"instance": "worst", "best_missing": {"pbm": 3, "cm": 5}},
    }
    run = Run(Path("results.json"), means_of(list(true_results().values())), {"reproduction": {"special": special}})
    claims, not_run = judge_claims(places_of(run, {}))
    assert {(claim.question.place, claim.model) for claim in claims if claim.question.place != ALL} == {
        (OPTIMAL, "pbm"),
        (NONE_OF_BEST, "cm"),
    }
    assert {(claim.question.place, claim.model, claim.reason) for claim in not_run} == {
        (OPTIMAL, "cm", "no query is quite like that: the nearest, query best, has 1 wrong pair"),
        (NONE_OF_BEST, "pbm", "no query is quite like that: the nearest, query worst, has 2 of the best 5"),
    }


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (Measured(10, 1), Measured(20, 1), HOLDS),
        (Measured(20, 1), Measured(10, 1), FAILS),
        (Measured(10, 3), Measured(20, 3), UNDECIDED),  # 2.4 standard errors
        (Measured(10, 0), Measured(20, 0), HOLDS),  # nothing is noisy
        (Measured(20, 0), Measured(10, 0), FAILS),
        (Measured(10, 0), Measured(10 + 1e-12, 0), UNDECIDED),  # rounding
        (Measured(0, 0), Measured(0, 0), UNDECIDED),
        (Measured(10, None), Measured(20, 1), UNDECIDED),
    ],
)
def test_ends_below(low: Measured, high: Measured, verdict: str) -> None:
    assert ends_below(low, high).verdict == verdict
    assert stays_above(high, low).verdict == verdict


def test_a_difference_counts_its_standard_errors() -> None:
    judgement = ends_below(Measured(10, 3), Measured(60, 4))
    assert (judgement.difference, judgement.stderr, judgement.standard_errors) == (50, 5, 10)
    half = ends_below(Measured(10, 3), Measured(60, 8), share=0.5)
    assert (half.difference, half.stderr) == (20, 5)
    assert half.numbers == "10.0 ± 3.0 against 0.5 × 60.0 ± 8.0"  # noqa: RUF001


def test_counts_of_violations() -> None:
    assert never(Measured(0, None)).verdict == HOLDS
    assert never(Measured(0.01, None)).verdict == FAILS
    assert some(Measured(0, None)).verdict == FAILS
    assert some(Measured(3, None)).verdict == UNDECIDED
    assert some(Measured(3, 1)).verdict == HOLDS
    assert zero(Measured(1e-9, 0)).verdict == HOLDS
