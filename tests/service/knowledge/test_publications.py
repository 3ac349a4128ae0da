"""A publication that is read again: it says the same, and what is known takes no more memory than it did."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saferank.service.knowledge.fold import Fold, differences, pack, read_head, restored, terms_in
from saferank.service.knowledge.knowledge import Terms
from saferank.store.contract import Publication
from tests.service.house import House, T, house, run

ITEMS = [f"item-{number}" for number in range(40)]


def arrays(part: Any) -> Iterator[Any]:
    """All arrays of evidence."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from arrays(inner)


def size(h: House) -> int:
    return sum(array.nbytes for array in arrays(h.knowledge().learner.evidence))


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


def test_terms_are_published_when_a_reset_has_changed_them() -> None:
    terms = Terms("kl-ucb-br", "anytime:0.5", 1000, 0, 5)
    fold = Fold.opened(1, terms, 3, bytes(16), (ITEMS[:5], []))
    before = pack(fold)
    assert "terms" not in read_head(before) and terms_in(read_head(before)) is None
    fold.reset(7, 90, "new terms", {"policy": "safe-draw", "lifetime_ms": 50})
    body = pack(fold)
    assert terms_in(read_head(body)) == fold.terms == Terms("safe-draw", "anytime:0.5", 1000, 50, 90, 0, 1)
    again = restored(Publication(1, 2, 90, 7, body), terms)
    assert (again.terms, again.opened_terms, again.terms_version) == (fold.terms, terms, fold.version)
    assert again.knowledge.terms == fold.terms and differences(pack(again), body) == []
    fold.terms = fold.terms._replace(opened_at=91)
    assert differences(pack(fold), body) == ["terms"]
