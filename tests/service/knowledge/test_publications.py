"""A publication that is read again: what is known takes no more memory than it did."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine_harness import House, T, house, run

ITEMS = [f"item-{number}" for number in range(40)]


def arrays(part: Any) -> Iterator[Any]:
    """All arrays of a learner's state."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from arrays(inner)


def size(h: House) -> int:
    return sum(array.nbytes for array in arrays(h.knowledge().learner.state))


@pytest.mark.parametrize("policy", ["kl-ucb-br", "safe-draw"])
def test_a_restarted_service_uses_no_more_memory_for_its_learners(tmp_path: Path, policy: str) -> None:
    async def test() -> None:
        async with house(tmp_path, policy=policy, rule="anytime:1e-5") as h:
            for number in range(40):
                page = await h.rank(base_ranking=ITEMS[:10], candidates=ITEMS[10:])
                await h.accept(page, page.ranking[number % 3])
            await h.close()
            before = size(h)
            await h.restart()
            await h.server.known_context(T, "c")
            assert before >= size(h) > 0

    run(test())
