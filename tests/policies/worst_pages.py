"""Plays a policy and asks of every page how bad it may be, if all that is known are the certificates."""

from typing import Any

import numpy as np

from saferank.live.learner import Learner
from saferank.policies import POLICIES, Setup, make_room
from saferank.policies.shared.derivation import close_ranks
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.verbs import choose, learn, new_impression
from tests.reference.worst_case import worst_case


def certificates_of(state: Any) -> set[tuple[int, int]]:
    kept = state.duels.certificates
    given = int(kept.given[0])
    return set(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))


def excesses(
    name: str, n_items: int, n_positions: int, rule: str, seed: int, pages: int, noise: float, gift: int = 0
) -> list[int]:
    """Of every page V(page) - V(original), at worst over all weak orders that agree with the certificates given.

    Users click by an order of their own, with exceptions. When certificates contradict one another no order agrees with
    all, nothing is promised any more and the run ends. A ``gift`` on the account was not earned.
    """
    kind, setup = POLICIES[name], Setup(n_items, n_positions, decision_rule(rule))
    policy, state = make_room(kind, setup, *kind.start(setup))
    state.account[1] += gift
    rng, users, page = stream(seed, "policy"), np.random.default_rng(seed), new_impression(n_positions, n_positions + 1)
    appeal, found = users.permutation(n_items) // 2, []
    for _ in range(pages):
        choose(policy, state, rng, page)
        shown = page.shown.tolist()
        worst = worst_case(n_items, certificates_of(state), list(range(n_positions)), shown)
        if worst is None:
            break
        found.append(worst)
        wanted = appeal[page.shown] == max(appeal[page.shown])
        learn(policy, state, page, np.where(users.random(n_positions) < noise, ~wanted, wanted).astype(np.int64))
    return found


def excesses_among_those_present(
    name: str, n_items: int, n_positions: int, rule: str, seed: int, pages: int, noise: float
) -> list[int]:
    """The same while items come and go: against production's ranking without the absent items, closed up.

    All that is known are the certificates between two present items. A coin in ten pages lets an item come or go.
    """
    learner = Learner(name, original=range(n_positions), candidates=range(n_positions, n_items), rule=rule)
    rng, users = stream(seed, "policy"), np.random.default_rng(seed)
    appeal, found = users.permutation(n_items) // 2, []
    for _ in range(pages):
        if users.random() < 0.1:
            present = learner.present.copy()
            present[users.integers(n_items)] ^= True
            if present.sum() >= n_positions:
                learner.regroup(present)
        page = learner.issue(rng)
        here = np.flatnonzero(learner.present).tolist()
        number = {item: place for place, item in enumerate(here)}
        known = {(number[i], number[j]) for i, j in certificates_of(learner.state) if i in number and j in number}
        reference = close_ranks(np.arange(n_positions), learner.present)
        worst = worst_case(
            len(here), known, *([number[item] for item in row.tolist()] for row in (reference, page.shown))
        )
        if worst is None:
            break
        found.append(worst - int(len(here) - n_positions / 2))
        wanted = appeal[page.shown] == max(appeal[page.shown])
        learner.learn(page, np.where(users.random(n_positions) < noise, ~wanted, wanted).astype(np.int64))
    return found
