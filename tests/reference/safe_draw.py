"""safe-draw, slowly: the program that docs/algorithms/safe-draw-to-the-letter.md spells out, taken from that page.

It imports nothing of ours. What it means is on the page.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "algorithms" / "safe-draw-to-the-letter.md"


@cache
def program() -> dict[str, Any]:
    """The names of the page's program."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks), str(PAGE), "exec"), names)
    return names


def error_of(alpha: float, *began: int) -> Any:
    """The error of an ordered pair; with K and L of the beginning that of ``budget:ALPHA``."""
    return program()["error_of"](alpha, *began)


def slow_safe_draw(
    size: tuple[int, int],
    alpha: float,
    words: Sequence[int],
    lifetime: int | None = None,
    trust: float = 0.5,
    began: tuple[int, ...] = (),
    most_exact: int = 12,
) -> Any:
    """The policy for these numbers of items and places, with these random words; ``began`` as in ``error_of``.

    It counts the wins of this epoch, by (winner, loser), which the policy itself does not need.
    """

    class Counted(program()["SafeDraw"]):  # type: ignore[misc]
        def settle(self, i: int, j: int, p0: float, now: int) -> Any:
            self.wins[i, j] += int(now > self.start)
            return super().settle(i, j, p0, now)

        def begin_epoch(self) -> None:
            self.wins.clear()
            super().begin_epoch()

    slow = Counted(*size, error_of(alpha, *began), words, inf if lifetime is None else lifetime, trust, most_exact)
    slow.wins = defaultdict(int)
    return slow
