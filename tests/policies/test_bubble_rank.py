"""BubbleRank with other readings of what the paper leaves open: equal to literal transcriptions of them."""

import numpy as np
import pytest

from saferank.policies import POLICIES, PolicyKind, Setup, policy_kind
from saferank.policies.bubble_rank import ALL_CANDIDATES, SHOWN_ONLY
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from tests.policies.at_work import AtWork
from tests.reference import decision as literal
from tests.reference.policies import BubbleRank
from tests.reference.randomness import Xoshiro


class AmongAll(BubbleRank):
    """x uniform among all unranked items."""

    def choose_challenger(self) -> int | None:
        unranked = self.unranked()
        return unranked[self.rng.below(len(unranked))] if unranked else None


class ShownOnly(BubbleRank):
    """The pair of the bottom item and the challenger, of which one is not shown, is not compared."""

    def feedback(self, clicks: list[int]) -> None:
        self.page.compared = [pair for pair in self.page.compared if set(pair) <= set(self.page.shown)]
        super().feedback(clicks)


def played(
    kind: PolicyKind, literally: type[BubbleRank], size: tuple[int, int], seed: int, best_first: bool
) -> tuple[int, list[int]]:
    """Play both side by side on the same coins; in how many rounds a surely beaten item challenged, and the leader."""
    setup = Setup(*size, decision_rule("paper:0.3"))
    state = AtWork(kind, setup)
    rng, users = stream(seed, "policy"), np.random.default_rng(seed)
    slow = literally(*size, Xoshiro(rng.tolist()), lambda s, n: literal.paper_decides(s, n, 0.3))
    impression, beaten = state.blank(), 0
    for _ in range(400):
        state.choose(rng, impression)
        page = slow.show()
        assert impression.shown.tolist() == page.shown
        assert rng.tolist() == slow.rng.state
        beaten += page.challenger is not None and slow.beats(slow.leader[-1], page.challenger)
        ranks = [item if best_first else size[0] - 1 - item for item in page.shown]
        clicks = [int(users.random() < 0.9 * 0.6**rank) for rank in ranks]
        state.learn(impression, np.array(clicks, np.int64))
        slow.feedback(clicks)
        assert state.row[:-1].tolist() == slow.leader
    return beaten, slow.leader


SIZES = pytest.mark.parametrize("size", [(6, 3), (5, 4), (4, 4), (7, 2)], ids=str)


@SIZES
def test_all_candidates_equals_its_transcription(size: tuple[int, int]) -> None:
    beaten = sum(played(ALL_CANDIDATES, AmongAll, size, seed, best_first=True)[0] for seed in range(3))
    assert (beaten > 0) == (size[0] > size[1])  # otherwise the two readings would not differ here


@SIZES
def test_shown_only_equals_its_transcription_and_keeps_the_items_of_the_page(size: tuple[int, int]) -> None:
    leaders = [played(SHOWN_ONLY, ShownOnly, size, seed, best_first=False)[1] for seed in range(2)]
    assert all(set(leader) == set(range(size[1])) for leader in leaders)
    swapped = any(leader != sorted(leader) for leader in leaders)
    assert swapped or size == (7, 2)  # the order is learnt all the same, but there clicks are too rare


def test_with_hidden_duels_better_items_would_come_in() -> None:
    assert set(played(policy_kind("bubble-rank"), BubbleRank, (6, 3), 0, best_first=False)[1]) != {0, 1, 2}


@pytest.mark.parametrize("variant", [ALL_CANDIDATES, SHOWN_ONLY], ids=lambda variant: variant.name)
def test_a_reading_can_be_named_but_is_not_on_offer(variant: PolicyKind) -> None:
    assert policy_kind(variant.name) is variant
    assert variant.name not in POLICIES
    with pytest.raises(ValueError, match=r"unknown policy 'bubble-rank:none'; known ones: batch-rank, bubble-rank"):
        policy_kind("bubble-rank:none")
