"""Pages of safe-draw that are out when the catalogue crosses 12 items are bet on at the odds of their own law.

Interpreted, in a process of its own: each form learns pages of the other, which nothing else compiles.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
import numpy as np
from saferank.live.learner import Learner
from saferank.randomness import stream
from saferank.statistics.pairs import row_of
from tests.reference.safe_draw import slow_safe_draw

before, K, after = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
names = [f"item {number}" for number in range(max(before, after))]
learner = Learner("safe-draw", original=names[:K], candidates=names[K:before], rule="anytime:1e-90", trust=0.5)
rng, users = stream(3, "forms"), np.random.default_rng(3)
slow = slow_safe_draw((before, K), 1e-90, rng.tolist())

def learn(impression, page):
    clicks = (users.random(K) < 0.1 + 0.4 * (np.array(page.shown) % 3 == 0)).astype(np.int64)
    learner.learn(impression, clicks)
    slow.learn(page, clicks.tolist())

for _ in range(200):  # so that weights differ
    learn(learner.issue(rng), slow.rank())
out = [(learner.issue(rng), slow.rank()) for _ in range(160)]
known = {pair: list(capital) for pair, capital in slow.soft.items()}
learner.regroup(np.arange(max(before, after)) < after, names[before:])
slow.call(list(range(K)), list(range(K, after)))
assert type(learner.state).__name__ == ("LargeState" if after > 12 else "SmallState")
for impression, page in out:
    learn(impression, page)
assert not slow.certificates
slots = sum(page.slot is not None for _, page in out)
bets, pairs = learner.state.duels, 0
for i in range(before):
    for j in range(i + 1, before):
        row = row_of(bets, i, j)
        capital = [slow.soft.get(pair, [0.0] * 8) for pair in ((i, j), (j, i))]
        assert bets.capital[2 * row : 2 * row + 2].tolist() == capital
        pairs += int(capital[0] != known.get((i, j), [0.0] * 8))
for _ in range(60):  # and both go on alike in the other form
    impression, page = learner.issue(rng), slow.rank()
    assert impression.ranking[: len(page.row)].tolist() == page.row
    learn(impression, page)
print(pairs, slots)
"""


@pytest.mark.parametrize("sizes", [(13, 5, 12), (14, 2, 12), (6, 3, 14)], ids=str)
def test_late_pages_of_the_other_form_are_bet_on_at_their_own_odds(sizes: tuple[int, int, int]) -> None:
    """Items leave or come while 160 pages are out; what is learnt from them is what the transcription learns."""
    finished = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, sizes)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    pairs_bet_on, pages_with_slot = map(int, finished.stdout.split())
    assert pairs_bet_on > 5
    assert pages_with_slot > 50 or sizes[0] < 13
