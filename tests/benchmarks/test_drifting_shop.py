"""A small shop that drifts: with certificates that end it is safe and above production's ranking after two lifetimes.

One busy query of 20 items; a lifetime is two days. The seed is fixed, so a run is always the same.
"""

from typing import Any

import drifting_shop
import drifting_world
import pytest
from drifting_shop import parser, play

DAYS = 2
OPTIONS = "--queries 1 --head 1 --items 20 --pages 4200 --span 14 --lifetime 2 --seed 8"


@pytest.fixture(autouse=True)
def _clear_cut_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items differ more than in a real shop and do not leave, so that a few thousand pages certify a lot."""
    monkeypatch.setattr(drifting_world, "SPREAD", 1.5)
    monkeypatch.setattr(drifting_world, "MEAN", 0.3)
    monkeypatch.setattr(drifting_world, "NOISE", 1.0)
    monkeypatch.setattr(drifting_shop, "TURNOVER", 0.0)


def faults(summary: dict[str, Any]) -> list[str]:
    """What is wrong with a shop. For two lifetimes after the drift, and only then, it may be worse than production."""
    later = summary["gains"]["head"][3:]
    found = [f"{gain:+.1%} in lifetime {number} after the drift" for number, gain in enumerate(later, 3) if gain <= 0]
    violations = summary["violations"][:1] + summary["violations"][3:]
    if any(violations):
        found.append(f"violations before the drift, and from the third lifetime after it on: {violations}")
    if summary["frozen"]:
        found.append("frozen")
    if summary["not_accepted"]:
        found.append(f"{summary['not_accepted']} reports were not accepted")
    assert summary["busy"] == 1
    return found


def test_it_is_above_production_again_after_two_lifetimes() -> None:
    summary = play("safe-draw", DAYS, parser().parse_args(OPTIONS.split())).summary()
    assert len(summary["gains"]["head"]) == 5
    assert not faults(summary)


def test_certificates_without_end_are_wrong_for_good() -> None:
    """So the test above can fail."""
    summary = play("safe-draw", 0, parser().parse_args(OPTIONS.split())).summary()
    assert faults(summary)


def test_a_busy_query_without_a_page_that_differs_from_the_leader_counts_as_frozen() -> None:
    shop = play("safe-draw", DAYS, parser().parse_args([*OPTIONS.split(), "--pages", "1400"]))
    assert shop.summary()["frozen"] == 0
    shop.comparing.clear()
    assert shop.summary()["frozen"] == 1
