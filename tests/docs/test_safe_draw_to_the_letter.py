"""The program that docs/algorithms/safe-draw-to-the-letter.md spells out plays what the library plays, coin by coin."""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank import Ranker
from saferank.randomness import stream
from saferank.statistics.bets import SOFT, entry_of
from saferank.statistics.pairs import row_of
from tests.reference.safe_draw import PAGE, program

TRACED = [(8, 5, None), (8, 5, 500), (20, 10, None), (20, 10, 500)]

Users = Callable[[int, list[int], np.random.Generator], list[int]]


def ranker_of(size: tuple[int, int], alpha: float, seed: int, lifetime: int | None, trust: float) -> Ranker:
    original, candidates = list(range(size[1])), list(range(size[1], size[0]))
    options: Any = {"rule": f"anytime:{alpha}", "seed": seed, "lifetime": lifetime, "trust": trust}
    return Ranker("safe-draw", original=original, candidates=candidates, **options)


def likes_high_numbers(number: int, page: list[int], random: np.random.Generator) -> list[int]:
    return [int(random.random() < (0.15 + 0.03 * item) * 0.9**place) for place, item in enumerate(page)]


def changes_its_mind(number: int, page: list[int], random: np.random.Generator) -> list[int]:
    """Clicks the best item of the page, by an order that turns round every 300 pages."""
    best = min(page) if number // 300 % 2 else max(page)
    return [int(item == best and random.random() < 0.9) for item in page]


def clicks_high(number: int, page: list[int], random: np.random.Generator) -> list[int]:
    return [int(item == max(page)) for item in page]


class Case(NamedTuple):
    """A ranker, its users, and what must have happened, so that the comparison says something."""

    size: tuple[int, int]
    alpha: float
    lifetime: int | None
    trust: float
    users: Users
    pages: int
    certificates: int = 1
    alarms: int = 0
    targets: int = 0


CASES = [
    Case((8, 5), 1e-3, None, 0.6, clicks_high, 250),
    Case((6, 3), 0.1, None, 0.977, likes_high_numbers, 600),
    Case((5, 1), 0.3, None, 0.5, likes_high_numbers, 2500),
    Case((4, 4), 0.3, None, 0.5, likes_high_numbers, 300),
    Case((6, 3), 0.1, 100, 0.977, likes_high_numbers, 800, targets=10),
    Case((6, 3), 0.1, 400, 0.9, changes_its_mind, 1200, alarms=1, targets=1),
    Case((5, 2), 0.3, 150, 0.5, changes_its_mind, 1200, targets=1),
    Case((20, 10), 1e-3, None, 0.6, clicks_high, 300),
    Case((14, 5), 0.1, None, 0.5, likes_high_numbers, 600),
    Case((13, 1), 0.1, None, 0.9, likes_high_numbers, 2500),
    Case((40, 25), 0.3, None, 0.977, likes_high_numbers, 160),
    Case((16, 6), 0.1, 200, 0.977, likes_high_numbers, 600),
    Case((13, 4), 0.2, 400, 0.9, changes_its_mind, 1200, alarms=1),
]


def test_the_words_of_a_seed() -> None:
    for seed, name in [(0, ("ranker",)), (7, ("ranker",)), (2**40 + 5, ("policy", "q", 3))]:
        assert program()["words_of"](seed, *name) == stream(seed, *name).tolist()


def same_page(ranker: Any, slow: Any, page: Any) -> Any:
    drawn, places = slow.rank(), int(page._impression.places[0])
    assert list(page.items) == drawn.shown
    assert page._impression.ranking[:places].tolist() == drawn.row
    assert page._impression.weight[:places].tolist() == drawn.weights
    assert ranker._rng.tolist() == slow.coins.words
    return drawn


def same_certificates(ranker: Any, slow: Any) -> None:
    kept = ranker._learner.evidence.duels.certificates
    given = int(kept.given[0])
    pairs = list(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))
    assert pairs == [(better, worse) for better, worse, _ in slow.certificates]
    if ranker._learner.evidence.duels.kinds[0] > 1:  # with a lifetime
        assert kept.expires[:given].tolist() == [expires for _, _, expires in slow.certificates]


def same_evidence(ranker: Any, slow: Any) -> None:
    bets = ranker._learner.evidence.duels
    for i, j in list(slow.I):
        row = row_of(bets, i, j)
        assert (bets.lead[row], bets.information[row]) == (slow.S[i, j], slow.I[i, j])
        assert bets.capital[entry_of(bets, row, SOFT, 0)].tolist() == slow.soft[i, j]
        assert bets.capital[entry_of(bets, row, SOFT, 1)].tolist() == slow.soft[j, i]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.size}-{case.lifetime}-{case.trust}")
def test_the_program_of_the_page_plays_what_the_library_plays(case: Case) -> None:
    ranker, targets = ranker_of(case.size, case.alpha, 7, case.lifetime, case.trust), 0
    slow = program()["safe_draw"](*case.size, case.alpha, 7, case.lifetime or inf, case.trust)
    random = np.random.default_rng(7)
    for number in range(case.pages):
        page = ranker.rank()
        drawn = same_page(ranker, slow, page)
        targets += int(drawn.target is not None)
        clicks = case.users(number, [int(item) for item in page.items], random)
        ranker.feedback(page, [item for item, click in zip(page.items, clicks, strict=True) if click])
        slow.learn(drawn, clicks)
        same_certificates(ranker, slow)
    same_evidence(ranker, slow)
    assert (ranker.alarms, list(ranker.leader)) == (slow.alarms, slow.plan.R)
    assert len(slow.certificates) >= case.certificates and slow.alarms >= case.alarms and targets >= case.targets


def row_of_trace(n_items: int, n_positions: int, lifetime: int | None) -> str:
    """A row of the page's table."""
    ranker, first = ranker_of((n_items, n_positions), 0.001, 7, lifetime, 0.6), []
    for number in range(2000):
        page = ranker.rank()
        ranker.feedback(page, [max(page.items)])
        if number < 5:
            first.append(" ".join(map(str, page.items)))
    given, words = ranker._learner.evidence.duels.certificates.given[0], ranker._rng.tolist()
    leader = " ".join(map(str, ranker.leader))
    pages, name = "; ".join(first), "none" if lifetime is None else str(lifetime)
    return f"| {n_items}, {n_positions} | {name} | {pages} | {given} | {leader} | {words[0]:016x} |"


@pytest.mark.parametrize("traced", TRACED)
def test_the_trace_of_the_page_is_what_the_library_plays(traced: tuple[int, int, int | None]) -> None:
    assert row_of_trace(*traced) in PAGE.read_text(encoding="utf-8").splitlines()
