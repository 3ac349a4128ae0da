"""The contract of a policy that is to be served: see ``saferank.policies.Servable``."""

from typing import Any

import numpy as np

from saferank.checks.contract import ContractError, require
from saferank.checks.state import copied, duels_of, same
from saferank.live.learner import Learner
from saferank.policies import PolicyKind, freeze, policy_kind
from saferank.randomness import Words, stream, uniform
from saferank.verbs import Impression, Ints, choose, new_impression

_ITEMS = tuple("abcdefg")
_POSITIONS = 3
_LEVEL = "0.3"  # so loose that pairs are certified within the pages of the check


def check_servable(kind: str | PolicyKind, pages: int = 120, seed: int = 0) -> None:
    """Raise a ``ContractError`` unless the policy keeps what ``Servable`` asks for; run ``check_policy`` first.

    >>> check_servable("kl-ucb-br", pages=40)
    """
    kind = policy_kind(kind) if isinstance(kind, str) else kind
    missing = kind.missing_to_be_served()
    require(not missing, f"{kind.name} cannot be served: it has no {', '.join(missing)}.")
    learner = Learner(
        kind.name, original=_ITEMS[:_POSITIONS], candidates=_ITEMS[_POSITIONS:], rule=kind.default_rule(_LEVEL)
    )
    rng = stream(seed, "checked serving")
    _check_first_leader(learner)
    for _ in range(pages):
        learner.learn(*_visited(learner, rng))
    _check_views(learner, rng)
    _check_certificates(learner)
    _check_items(learner, rng)


def _visited(learner: Learner, rng: Words) -> tuple[Impression, Ints]:
    """A page that is counted on the learner and chosen on a copy, and clicks of a user who likes late items."""
    learner.count_issued()
    impression = _page(learner, copied(learner.state), rng)
    clicks = [uniform(rng) < (1 + item) / len(learner.items) for item in impression.shown]
    return impression, np.array(clicks, np.int64)


def _page(learner: Learner, state: Any, rng: Words) -> Impression:
    impression = new_impression(learner.n_positions, learner.kind.places(learner.setup))
    choose(learner.policy, state, rng, impression)
    freeze(learner.policy, state, impression)
    return impression


def _rebuilt(learner: Learner, base: list[int]) -> Any:
    return learner.kind.rebuild(learner.policy, copied(learner.state), np.array(base, np.uint32))  # type: ignore[misc]


def _leader(learner: Learner, state: Any) -> list[int]:
    return [int(item) for item in learner.kind.leader(state)[: learner.n_positions]]


def _check_first_leader(learner: Learner) -> None:
    base = [4, 0, 2]
    require(
        _leader(learner, _rebuilt(learner, base)) == base,
        f"rebuild() of {learner.kind.name} makes another leader of the base ranking although nothing is certified.",
    )


def _check_views(learner: Learner, rng: Words) -> None:
    """Pages for other base rankings, chosen on copies, leave the evidence alone and are functions of their coins."""
    name, before = learner.kind.name, copied(learner.state)
    for base in ([6, 5, 4], [2, 1, 0], [0, 3, 6]):
        state = _rebuilt(learner, base)
        if learner.kind.reorder is not None:
            order = np.arange(len(_ITEMS), dtype=np.uint32)[::-1].copy()
            state = learner.kind.reorder(learner.policy, state, order)
            require(
                np.array_equal(state.order, order), f"reorder() of {name} leaves another state.order than it was given."
            )
        leader = _leader(learner, state)
        require(len(set(leader)) == learner.n_positions, f"rebuild() of {name} gives the leader {leader}.")
        require(
            same(duels_of(state), duels_of(before)) or _base_is_in(state),
            f"rebuild() or reorder() of {name} changes the evidence.",
        )
        coins, evidence = rng.copy(), copied(duels_of(state))
        one, other = (_page(learner, copied(state), coins.copy()) for _ in range(2))
        require(same(one, other), f"choose() of {name} gives two pages for the same state and coins.")
        _page(learner, state, rng)
        require(same(duels_of(state), evidence), f"choose() of {name} changes the evidence.")
    require(same(learner.state, before), f"rebuild() or choose() of {name} changes a state of which it got a copy.")


def _base_is_in(state: Any) -> bool:
    """Duels with a lifetime hold production's ranking themselves."""
    return hasattr(duels_of(state), "base")


def _check_certificates(learner: Learner) -> None:
    name, kept = learner.kind.name, learner.state.duels.certificates
    given = int(kept.given[0])
    pairs = list(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))
    require(given > 0, f"{name} certifies nothing in a world where one item is always better at the level {_LEVEL}.")
    wrong = [pair for pair in pairs if not all(0 <= item < len(learner.items) for item in pair) or pair[0] == pair[1]]
    require(not wrong, f"{name} certifies the pair {wrong[:1]}, which is not a pair of its items.")


def _check_items(learner: Learner, rng: Words) -> None:
    """An item that left is on no page; one that came may be."""
    gone = learner.leader()[0]
    learner.rebase([item for item in _ITEMS if item != gone], ["new"])
    try:
        pages = [_page(learner, copied(learner.state), rng) for _ in range(40)]
    except IndexError as problem:
        raise ContractError(
            f"regroup() of {learner.kind.name} leaves arrays that are too short: {problem}."
        ) from problem
    rows = [learner.names(page.ranking[: page.places[0]]) for page in pages]
    require(
        all(gone not in row and len(set(row)) == len(row) for row in rows),
        f"{learner.kind.name} shows or compares an item that was removed by regroup().",
    )
