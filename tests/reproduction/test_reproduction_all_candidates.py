"""BubbleRank with the other reading of its candidate rule: equal to a literal transcription of that reading."""

import numpy as np
import pytest
from reference import decision as literal
from reference.policies import BubbleRank
from reference.randomness import Xoshiro

from saferank.policies import POLICIES, Setup, make_room, policy_kind
from saferank.policies.bubble_rank import ALL_CANDIDATES
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.verbs import choose, learn, new_impression


class AmongAll(BubbleRank):
    """x uniform among all unranked items."""

    def choose_challenger(self) -> int | None:
        unranked = self.unranked()
        return unranked[self.rng.below(len(unranked))] if unranked else None


def played(size: tuple[int, int], rounds: int, seed: int) -> int:
    """Play both side by side on the same coins; returns in how many rounds a surely beaten item challenged."""
    setup = Setup(*size, decision_rule("paper:0.3"))
    policy, state = ALL_CANDIDATES.start(setup)
    rng, users = stream(seed, "policy"), np.random.default_rng(seed)
    slow = AmongAll(*size, Xoshiro(rng.tolist()), lambda s, n: literal.paper_decides(s, n, 0.3))
    impression, beaten = new_impression(size[1], ALL_CANDIDATES.places(setup)), 0
    for _ in range(rounds):
        policy, state = make_room(ALL_CANDIDATES, setup, policy, state)
        choose(policy, state, rng, impression)
        page = slow.show()
        assert impression.shown.tolist() == page.shown
        assert rng.tolist() == slow.rng.state
        beaten += page.challenger is not None and slow.beats(slow.leader[-1], page.challenger)
        clicks = [int(users.random() < 0.9 * 0.6**item) for item in page.shown]
        learn(policy, state, impression, np.array(clicks, np.int64))
        slow.feedback(clicks)
        assert state.row[:-1].tolist() == slow.leader
    return beaten


@pytest.mark.parametrize("size", [(6, 3), (5, 4), (4, 4), (7, 2)], ids=str)
def test_it_equals_its_transcription(size: tuple[int, int]) -> None:
    beaten = sum(played(size, 400, seed) for seed in range(3))
    assert (beaten > 0) == (size[0] > size[1])  # otherwise the two readings would not differ here


def test_it_can_be_named_but_is_not_on_offer() -> None:
    assert policy_kind("bubble-rank:all-candidates") is ALL_CANDIDATES
    assert "bubble-rank:all-candidates" not in POLICIES
    with pytest.raises(ValueError, match=r"unknown policy 'bubble-rank:none'; known are bubble-rank, kl-ucb-br"):
        policy_kind("bubble-rank:none")
