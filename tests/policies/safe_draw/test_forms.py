"""Pages of safe-draw that are out when the catalogue crosses 12 items are bet on at the odds of their own law."""

import numpy as np
import pytest

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.statistics.pairs import row_of
from saferank.verbs import Impression
from tests.policies.at_work import AtWork
from tests.reference.safe_draw import slow_safe_draw


@pytest.mark.parametrize("sizes", [(13, 5, 12), (14, 2, 12), (6, 3, 14)], ids=str)
def test_late_pages_of_the_other_plan_are_bet_on_at_their_own_odds(sizes: tuple[int, int, int]) -> None:
    """Items leave or come while 160 pages are out; what is learnt from them is what the transcription learns."""
    before, k, after = sizes
    state = AtWork(POLICIES["safe-draw"], Setup(before, k, decision_rule("anytime:1e-90"), trust=0.5))
    rng, users = stream(3, "forms"), np.random.default_rng(3)
    slow = slow_safe_draw((before, k), 1e-90, rng.tolist())

    def learn(impression: Impression, page: object) -> None:
        clicks = (users.random(k) < 0.1 + 0.4 * (np.array(page.shown) % 3 == 0)).astype(np.int64)  # type: ignore[attr-defined]
        state.learn(impression, clicks, frozen=True)
        slow.learn(page, clicks.tolist())

    for _ in range(200):  # so that weights differ
        learn(state.issue(rng), slow.rank())
    out = [(state.issue(rng), slow.rank()) for _ in range(160)]
    known = {pair: list(capital) for pair, capital in slow.soft.items()}
    state.call(list(range(k)), list(range(k, after)))
    slow.call(list(range(k)), list(range(k, after)))
    assert type(state.plan).__name__ == ("LargePlan" if after > 12 else "SmallPlan")
    for impression, page in out:
        learn(impression, page)
    assert not slow.certificates
    bets, pairs = state.duels, 0
    for i in range(before):
        for j in range(i + 1, before):
            row = row_of(bets, i, j)
            capital = [slow.soft.get(pair, [0.0] * 8) for pair in ((i, j), (j, i))]
            assert bets.capital[2 * row : 2 * row + 2].tolist() == capital
            pairs += int(capital[0] != known.get((i, j), [0.0] * 8))
    for _ in range(60):  # and both go on alike with the other plan
        impression, page = state.issue(rng), slow.rank()
        assert impression.ranking[: len(page.row)].tolist() == page.row
        learn(impression, page)
    assert pairs > 5
    assert before < 13 or sum(page.slot is not None for _, page in out) > 50
