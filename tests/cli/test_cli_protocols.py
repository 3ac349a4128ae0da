"""Options to protocol: our own policies are an addition that can be switched off."""

from pathlib import Path
from typing import Any

import pytest

from saferank.cli.errors import InputError
from saferank.cli.options import ALL_POLICIES, OURS
from saferank.cli.protocols import protocol_of
from saferank.cli.reproduction import Order

GIVEN: dict[str, Any] = {
    "profile": "quick", "log": None, "form": None, "policies": ALL_POLICIES, "models": "pbm", "rule": "paper:1/T",
    "positions": 5, "items": 10, "rounds": 100, "repetitions": None, "queries": None, "sessions": None,
    "iterations": 5, "seed": 0, "without": None, "study_instances": None, "max_bad": 0.01, "plugins": (), "jobs": 1,
    "cluster": None, "resume": False, "overwrite": False, "out": Path("out"), "command": ["saferank"],
}  # fmt: skip


def order(**changes: Any) -> Order:
    return Order(**{name: value for name, value in (GIVEN | changes).items() if name in Order.__dataclass_fields__})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f"{ALL_POLICIES},{OURS}"),
        ({"without": "additions"}, ALL_POLICIES),
        ({"without": "study,additions"}, ALL_POLICIES),
        ({"policies": "kl-ucb-br,safe-blocks"}, "kl-ucb-br,safe-blocks"),
    ],
)
def test_ours_are_played_beside_the_papers_unless_you_say_otherwise(changes: dict[str, Any], expected: str) -> None:
    assert ",".join(protocol_of(order(**changes)).policies) == expected


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(InputError, match="unknown part 'dessert'; known ones: additions, sensitivity, study"):
        protocol_of(order(without="dessert"))
