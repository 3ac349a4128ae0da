"""Pages that are chosen in one block of memory are those that are chosen on a copy of every array."""

import hashlib

import numpy as np
import pytest

from saferank.policies import freeze
from saferank.service.knowledge.knowledge import ROUNDS
from saferank.service.knowledge.view import View, _copied, _law
from saferank.store.page_record import Law
from saferank.verbs import choose, new_impression
from tests.service.knowledge.test_page_check import SERVED
from tests.service.knowledge.worlds import World


def on_a_copy(world: World, view: View, coins: bytes) -> tuple[tuple[str, ...], Law, int]:
    """The page of these coins, on arrays that nothing else uses: row, law and round."""
    learner, pages = view._learner, world.knowledge.pages
    state, impression = _copied(learner.state), new_impression(learner.n_positions, learner.kind.places(learner.setup))
    wanted = hashlib.blake2b(coins, digest_size=1, person=b"parity").digest()[0] & 1
    state.round[0] = world.knowledge.epoch * ROUNDS + pages + ((pages + 1) & 1 ^ wanted)
    choose(learner.policy, state, np.frombuffer(coins, np.uint64).copy(), impression)
    freeze(learner.policy, state, impression)
    places = int(impression.places[0])
    row = tuple(str(learner.items[number]) for number in impression.ranking[:places])
    return row, _law(impression, places), int(impression.round[0])


@pytest.mark.parametrize("policy", SERVED)
@pytest.mark.parametrize(("n_items", "k"), [(7, 3), (14, 4)])
def test_pages_are_those_of_copied_arrays(policy: str, n_items: int, k: int) -> None:
    """Two views take turns in the same block, while knowledge grows."""
    world = World(policy, n_items, k, rule="anytime:0.2", seed=4)
    for _ in range(4):
        world.visit(40)
        base = world.dice.sample(world.items, n_items)
        views = [View(world.knowledge, world.base), View(world.knowledge, base)]
        for number in range(20):
            view, coins = views[number % 2], world.dice.randbytes(32)
            page = view.page(coins)
            assert (page.row, page.law, page.round) == on_a_copy(world, view, coins)
