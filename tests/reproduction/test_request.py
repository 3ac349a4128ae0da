"""What is asked for becomes a protocol: our own policies are an addition that can be left out."""

from typing import Any

import pytest

from saferank.errors import ArgumentError
from saferank.policies import policies_of
from saferank.reproduction.protocol import ReproductionRequest

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
    assert ReproductionRequest(**changes).protocol().policies == expected


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(ArgumentError, match="unknown part 'dessert'; known ones: additions, sensitivity, study"):
        ReproductionRequest(without=("dessert",)).protocol()


def test_additions_that_do_not_take_the_rule_are_left_out() -> None:
    policies = ReproductionRequest(rule="paper:0.01").protocol().policies
    assert "kl-ucb-br" in policies
    assert "safe-draw" not in policies
