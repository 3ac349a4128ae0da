"""How far pairs have come, in a few numbers."""

import pytest

from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.knowledge import PairProgress
from tests.service.knowledge.test_page_check import SERVED
from tests.service.knowledge.worlds import World


@pytest.mark.parametrize("policy", SERVED)
def test_the_race_agrees_with_the_list_of_pairs(policy: str) -> None:
    world = World(policy, 7, 3, seed=3)
    world.visit(60)
    knowledge, certified = world.knowledge, world.knowledge.certified
    index, pairs, found = knowledge.index, knowledge.compared(1000), knowledge.race()
    assert (found.compared, found.decided) == (len(pairs), len(certified.pairs)) and pairs

    def is_open(one: int, other: int) -> bool:
        return not certified.surely(one, other) and not certified.surely(other, one)

    racing = [PairProgress(0, 0, s, n) for a, b, s, n in pairs if is_open(index[a], index[b])]
    best = max(racing, key=lambda entry: (entry.progress, entry.comparisons), default=PairProgress())
    assert found[2:] == best[2:]
    knowledge.certified = Certified([(index[a], index[b]) for a, b, _, _ in pairs])
    assert knowledge.race()[2:] == (0, 0), "decided pairs do not race"


def test_one_lucky_click_is_no_lead() -> None:
    assert PairProgress(1, 0, 1, 1).progress < PairProgress(1, 0, 6, 20).progress
