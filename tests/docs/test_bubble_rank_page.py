"""BubbleRank of docs/researchers/add-a-policy.md plays the pages of the built-in one, and keeps the contract."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from saferank import Ranker
from saferank.checks import check_policy
from saferank.policies import POLICIES

PAGE = Path(__file__).parents[2] / "docs" / "researchers" / "add-a-policy.md"


@pytest.fixture
def bubble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The policy of the page's second program, registered."""
    _, program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "bubble.py").write_text(program, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("bubble")
    yield "bubble"
    del POLICIES["bubble"], sys.modules["bubble"]


def test_it_keeps_the_contract(bubble: str) -> None:
    check_policy(bubble)


@pytest.mark.parametrize("seed", [1, 2])
def test_it_plays_the_pages_of_the_built_in_one(bubble: str, seed: int) -> None:
    """Coin by coin, with the same clicks, until leaders have moved and unranked items have come onto the page."""
    rng = np.random.default_rng(seed)
    attraction = dict(zip("abcdevwxyz", rng.uniform(0.1, 0.9, 10), strict=True))
    given = {"original": list("abcde"), "candidates": list("vwxyz"), "rule": "paper:1e-2", "seed": seed}
    mine, ours = (Ranker(name, **given) for name in (bubble, "bubble-rank"))  # type: ignore[arg-type]
    for _ in range(2000):
        page, other = mine.rank(), ours.rank()
        assert (page.items, page.hidden) == (other.items, other.hidden)
        clicked = [item for item in page.items if rng.random() < attraction[str(item)]]
        mine.feedback(page, clicked=clicked)
        ours.feedback(other, clicked=clicked)
    assert mine.leader == ours.leader != tuple("abcde")
    assert set(mine.leader) - set("abcde")
