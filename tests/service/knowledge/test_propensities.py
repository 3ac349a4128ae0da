"""Propensities of logged decisions: by hand, against the frequencies of real draws, and in the file of an export."""

import io
import json
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saferank.service.calls.export import export
from saferank.service.knowledge.arms import EXPLORE, HOLDOUT
from saferank.service.knowledge.propensities import Decision, decisions_of
from saferank.store.page_record import Law, PageRecord
from tests.cli.commands.test_export import filled
from tests.service.house import ALONE, house, run


def record(k: int, row: str, law: Law, arm: int = EXPLORE, instead: str = "") -> PageRecord:
    return PageRecord(
        bytes(16), "t", "c", "safe-draw", arm, 0, 1, 1000, k, b"", bytes(16), bytes(32), tuple(row),
        tuple(instead), law,
    )  # fmt: skip


def drawn(weights: list[float], exchanges: list[int], groups: list[int]) -> Law:
    size = len(weights)
    return Law(bytes(groups), bytes([size] * size), struct.pack(f"<{size}d{size}Q", *weights, *exchanges))


ALL = [0b110, 0b101, 0b011]
PAGES = {  # of a, b, c with the weights 4, 2, 1, two of them shown
    "ab": Fraction(4, 7) * Fraction(2, 3), "ba": Fraction(2, 7) * Fraction(4, 5),
    "cb": Fraction(1, 7) * Fraction(2, 6), "ac": Fraction(4, 7) * Fraction(1, 3),
}  # fmt: skip


def against(other: str) -> float:
    return float(PAGES["ab"] / (PAGES["ab"] + PAGES[other]))


def about(value: float) -> Any:
    return pytest.approx(value)


def test_a_page_by_hand() -> None:
    """5/8 that a stands above b, 8/9 that a is first and not c, 2/3 that b is second and not c."""
    assert [against(other) for other in ("ba", "cb", "ac")] == pytest.approx([5 / 8, 8 / 9, 2 / 3])
    found = list(decisions_of(record(2, "abc", drawn([4.0, 2.0, 1.0], ALL, [0, 0, 0]))))
    assert found == [
        Decision(0, "a", "b", 1, about(5 / 8)),
        Decision(1, "b", "a", 0, about(5 / 8)),
        Decision(0, "a", "c", None, about(8 / 9)),
        Decision(1, "b", "c", None, about(2 / 3)),
    ]


def test_only_what_could_have_been_exchanged_is_a_decision() -> None:
    law = drawn([4.0, 2.0, 1.0], [0b010, 0b001, 0], [0, 0, 0])  # c must not be shown
    assert [(d.item, d.other) for d in decisions_of(record(2, "abc", law))] == [("a", "b"), ("b", "a")]
    law = drawn([4.0, 2.0, 1.0], ALL, [0, 1, 1])  # two groups, each drawn by itself
    assert list(decisions_of(record(2, "abc", law))) == [Decision(1, "b", "c", None, about(2 / 3))]
    for other in ({"arm": HOLDOUT}, {"instead": "ba"}):
        assert list(decisions_of(record(2, "abc", drawn([4.0, 2.0, 1.0], ALL, [0, 0, 0]), **other))) == []


def test_coins_of_neighbours() -> None:
    law = Law(bytes([0, 0, 2]), bytes([2, 2, 3]))
    assert list(decisions_of(record(3, "abc", law))) == [Decision(0, "a", "b", 1, 0.5), Decision(1, "b", "a", 0, 0.5)]


@pytest.mark.parametrize("policy", ["safe-draw", "kl-ucb-br"])
def test_items_stand_where_the_propensities_say(policy: str, tmp_path: Path) -> None:
    """The law has a part that no record has, the draws that were not safe; propensities do not need it.

    Of every page one pair of places, the same for both of its orders; within four standard deviations of 800 pages.
    """

    async def test() -> None:
        gap, variance, pages = 0.0, 0.0, 0
        async with house(tmp_path, policy=policy, rule="anytime:1e-3", trust=0.5, **ALONE) as h:
            for _ in range(800):
                page = h.record(await h.rank())
                chosen = [d for d in decisions_of(page) if d.place == 0 and d.other_place == 1]
                for decision in chosen:
                    first = decision.item < decision.other
                    expected = decision.propensity if first else 1 - decision.propensity
                    gap, variance, pages = gap + first - expected, variance + expected * (1 - expected), pages + 1
        assert pages > 100 and variance > 10
        assert abs(gap) < 4 * np.sqrt(variance)

    run(test())


def test_the_file_has_the_names_of_the_open_bandit_dataset(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    out = io.BytesIO()
    export(str(tmp_path / "store"), "obp", None, out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    names = ["timestamp", "impression_id", "context", "position", "item_id", "other_item_id", "other_position"]
    assert all(list(line) == [*names, "click", "propensity_score"] for line in lines)
    assert lines and {line["click"] for line in lines} <= {0, 1}
