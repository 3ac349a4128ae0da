"""The contract of a policy that is to be served: see ``saferank.policies.Servable``."""

from typing import Any

import numpy as np

from saferank.checks.contract import ContractError, require
from saferank.checks.state import copied, same
from saferank.live.learner import Learner
from saferank.policies import PolicyKind, policy_kind
from saferank.randomness import Words, stream, uniform
from saferank.verbs import Call, Impression, Ints, choose, freeze, new_impression, renew

_ITEMS = tuple("abcdefg")
_POSITIONS = 3
_LEVEL = "0.3"  # so loose that pairs are certified within the pages of the check


def check_servable(kind: str | PolicyKind, pages: int = 120, seed: int = 0) -> None:
    """Raise a ``ContractError`` unless the policy keeps what ``Servable`` asks for; run ``check_policy`` first.

    Args:
        kind: A policy, or the name of one.
        pages: Pages that are learnt.
        seed: Seed of coins and clicks.

    Raises:
        ContractError: A part is missing or breaks its contract; the message says which.
        ValueError: There is no policy of this name.

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
    for number in range(pages):
        learner.learn(*_visited(learner, number, rng))
    _check_views(learner, pages, rng)
    _check_certificates(learner)
    _check_items(learner, pages, rng)


def _call(base: list[int], n_items: int = len(_ITEMS)) -> Call:
    others = [item for item in reversed(range(n_items)) if item not in base]
    return Call(np.array(base, np.uint32), np.array(others, np.uint32))


def _visited(learner: Learner, issued: int, rng: Words) -> tuple[Impression, Ints]:
    """A page of a plan that is made for it, and clicks of a user who likes late items."""
    impression = _page(learner, _plan(learner, _call([0, 1, 2]), issued), issued, rng)
    clicks = [uniform(rng) < (1 + item) / len(learner.items) for item in impression.shown]
    return impression, np.array(clicks, np.int64)


def _plan(learner: Learner, call: Call, issued: int) -> Any:
    try:
        return learner.plan(call, issued)
    except (IndexError, ValueError) as problem:
        raise ContractError(f"plan() or renew() of {learner.kind.name} fails for another call: {problem}.") from problem


def _page(learner: Learner, plan: Any, issued: int, rng: Words) -> Impression:
    n_positions = len(plan.base)
    impression = new_impression(n_positions, learner.kind.places(len(learner.items), n_positions))
    impression.round[0] = issued + 1
    choose(learner.policy, learner.evidence, plan, rng, impression)
    freeze(learner.policy, learner.evidence, plan, impression, np.ones(n_positions, np.int64))
    return impression


def _leader(learner: Learner, plan: Any) -> list[int]:
    return [int(item) for item in learner.kind.leader(learner.evidence, plan)[: len(plan.base)]]


def _check_first_leader(learner: Learner) -> None:
    base = [4, 0, 2]
    require(
        _leader(learner, _plan(learner, _call(base), 0)) == base,
        f"renew() of {learner.kind.name} makes another leader of the base ranking although nothing is certified.",
    )


def _check_views(learner: Learner, issued: int, rng: Words) -> None:
    """Plans of other calls, of other sizes too, leave the evidence alone; pages are functions of plan and coins."""
    name, before, slot = learner.kind.name, copied(learner.evidence), None
    for base in ([6, 5, 4], [2, 1, 0], [0, 3, 6], [5, 1]):
        plan = _plan(learner, _call(base), issued)
        leader = _leader(learner, plan)
        require(len(set(leader)) == len(base), f"renew() of {name} gives the leader {leader}.")
        page = _page(learner, plan, issued, rng.copy())
        again = _page(learner, plan, issued, rng.copy())
        require(same(page, again), f"choose() of {name} gives two pages for the same plan and coins.")
        if slot is not None and len(slot.base) == len(base):
            slot.base[:], slot.candidates[:] = _call(base)
            renew(learner.policy, learner.evidence, slot, issued)
            other = _page(learner, slot, issued, rng.copy())
            require(
                same(page, other),
                f"renew() of {name} does not derive everything again: a plan that held another call gives another "
                "page. Read plan.base and plan.candidates in renew(), and let nothing of the call before stay.",
            )
        slot = plan
        require(same(learner.evidence, before), f"renew(), choose() or freeze() of {name} changes the evidence.")
        uniform(rng)


def _check_certificates(learner: Learner) -> None:
    name, kept = learner.kind.name, learner.evidence.duels.certificates
    given = int(kept.given[0])
    pairs = list(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))
    require(given > 0, f"{name} certifies nothing in a world where one item is always better at the level {_LEVEL}.")
    wrong = [pair for pair in pairs if not all(0 <= item < len(learner.items) for item in pair) or pair[0] == pair[1]]
    require(not wrong, f"{name} certifies the pair {wrong[:1]}, which is not a pair of its items.")


def _check_items(learner: Learner, issued: int, rng: Words) -> None:
    """An item that left is on no page; one that came may be."""
    gone = _leader(learner, _plan(learner, _call([0, 1, 2]), issued))[0]
    learner.know(["new"])
    base = [item for item in range(len(_ITEMS)) if item != gone][:_POSITIONS]
    call = _call(base, len(learner.items))
    call = call._replace(candidates=call.candidates[call.candidates != gone])
    try:
        pages = [_page(learner, _plan(learner, call, issued), issued, rng) for _ in range(40)]
    except IndexError as problem:
        raise ContractError(
            f"with_items() of {learner.kind.name} leaves arrays that are too short: {problem}."
        ) from problem
    rows = [page.ranking[: page.places[0]].tolist() for page in pages]
    require(
        all(gone not in row and len(set(row)) == len(row) for row in rows),
        f"{learner.kind.name} shows or compares an item that is not in the call.",
    )
