"""A claim that fails is explained by a reading under which it holds, with both numbers and what else it changes."""

from pathlib import Path

from saferank.reporting.claims import Claim, Place, judge_claims, places_of
from saferank.reporting.frames import means_of
from saferank.reporting.reading import Run
from saferank.reporting.readings import OtherReading, explain, readings_of
from saferank.simulation.results import Result
from tests.reporting.planted import SPECIAL, curve, true_results

RULE = "paper:1/T"


def explained(variants: list[Result], regret: float = 280.0) -> tuple[list[Claim], list[OtherReading]]:
    """True results, but BubbleRank ends at ``regret`` of 1,000 on the query without any of the best."""
    results = true_results()
    for model in ("pbm", "cm"):
        results["worst", model, "bubble-rank"] = curve("bubble-rank", model, "worst", regret=regret, rule=RULE)
        results["worst", model, "kl-ucb-br"] = curve("kl-ucb-br", model, "worst", regret=200.0, rule=RULE)
    places: dict[str, Place] = places_of(Run(Path("results.json"), means_of(list(results.values())), {}), SPECIAL)
    claims, _ = judge_claims(places)
    return claims, explain(claims, readings_of(places, means_of(variants), RULE))


def shown_only(worst: float, best: float, rule: str = RULE) -> list[Result]:
    return [
        curve("bubble-rank:shown-only", "cm", query, regret=regret, rule=rule)
        for query, regret in (("worst", worst), ("best", best))
    ]


def test_the_reading_under_which_it_holds_is_told_with_all_numbers() -> None:
    claims, (explanation,) = explained(shown_only(worst=930.0, best=20.0))
    (failing,) = [claim for claim in claims if claim.verdict == "does not hold"]
    assert explanation.claim == failing and explanation.under.verdict == "holds"
    assert failing.numbers.startswith("280") and explanation.under.numbers.startswith("930")
    assert explanation.also == []


def test_what_else_the_reading_changes_is_told_too() -> None:
    _, (explanation,) = explained(shown_only(worst=930.0, best=45.0))  # above TopRank's 40 on the optimal query
    assert [(ours.sentence, ours.verdict, other.verdict) for ours, other in explanation.also] == [
        (
            "Under CM, on the query whose original ranking is optimal, BubbleRank ends below TopRank",
            "holds",
            "does not hold",
        )
    ]


def test_a_reading_that_does_not_help_explains_nothing() -> None:
    assert explained(shown_only(worst=300.0, best=20.0))[1] == []
    assert explained(shown_only(worst=930.0, best=20.0, rule="paper:0.01"))[1] == []
    assert explained([])[1] == []


def test_a_claim_that_is_undecided_is_not_explained_by_a_reading() -> None:
    claims, explanations = explained(shown_only(worst=930.0, best=20.0), regret=900.0)
    assert [claim.verdict for claim in claims if claim.question.says == "hardly improves"] == ["undecided"]
    assert explanations == []


def test_a_claim_that_holds_needs_no_explanation() -> None:
    assert explained(shown_only(worst=960.0, best=20.0), regret=950.0)[1] == []
