"""The contract of a policy: honest pages, learning without side effects, no memory outside policy and state.

A plug-in is played interpreted, which sees every index and names lines, at several sizes, and then compiled at one:
both must play the same pages. The package's own policies, which the tests compare with slow transcriptions, are played
as they are.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from saferank._kernel import JIT, implemented, is_foreign
from saferank.checks.contract import blaming, require
from saferank.checks.interpreted import Interpreter
from saferank.checks.sources import check_functions, check_kernels
from saferank.checks.state import shared_field
from saferank.checks.trial import Trial, Verbs, interpreted_verbs
from saferank.click_models import CLICK_MODELS
from saferank.plugins import home_of
from saferank.policies import PolicyKind, Setup, advance, count_issued, freeze, has_room, policy_kind
from saferank.statistics.decision import decision_rule
from saferank.verbs import choose, learn

_LEVEL = "0.5"  # so loose that leaders move within a few rounds
_PAGES_OUT = 3
_EXAMINATION = 0.8  # of the second position, for a policy that asks for it

Pages = list[list[list[int]]]


def is_plugin(kind: PolicyKind) -> bool:
    """True when the class of a policy, or the function that starts it, was written outside the package."""
    return is_foreign(kind.policy) or is_foreign(home_of(kind.start))


def check_policy(
    kind: str | PolicyKind,
    n_items: int = 6,
    n_positions: int = 3,
    rounds: int = 200,
    seed: int = 0,
    *,
    compiled: bool = True,
) -> None:
    """Raise a ``ContractError`` unless the policy keeps the contract of a policy.

    It plays ``rounds`` pages on the given size, as a live ranker without a horizon and with answers that come late or
    never, and again with one position, with every item on the page, and with a single item. Pages of a policy that is
    registered with ``safe=True`` are held against the worst case (up to 12 items). The seeds are fixed: a
    verdict never changes. A plug-in is played interpreted, and unless ``compiled`` is false compiled as well.

    >>> check_policy("kl-ucb-br", n_items=4, n_positions=2, rounds=50)
    """
    kind = policy_kind(kind) if isinstance(kind, str) else kind
    _check_verbs(kind)
    _check_assumption(kind)
    rule = decision_rule(kind.default_rule(_LEVEL))
    known = tuple(_EXAMINATION**position for position in range(n_items)) if kind.needs_examination else None
    asked = Setup(n_items, n_positions, rule, examination=known)
    if not is_plugin(kind):
        _check_sizes(kind, asked, rounds, seed, Verbs(), replayed=False)
        return
    _check_sources(kind)
    interpreter = Interpreter(kind.policy.__module__, home_of(kind.start).__module__)
    own = is_foreign(kind.policy)  # with a choose() of its own, not one of ours with other parameters
    with np.errstate(all="ignore"):  # compiled code does not warn either
        verbs = interpreted_verbs(interpreter)
        pages = _check_sizes(_interpreted(kind, interpreter), asked, rounds, seed, verbs, replayed=own)
    if compiled and JIT:
        _check_compiled(replace(kind, safe=False), asked, rounds, seed, pages)  # the same pages were held to it above


def _check_verbs(kind: PolicyKind) -> None:
    for verb in (choose, learn):
        with blaming(kind.policy):
            require(
                implemented(verb, kind.policy) is not None,
                f"{verb.__name__}() is not implemented for {kind.policy.__name__}. Decorate a function with "
                f"@implements({verb.__name__}, {kind.policy.__name__}).",
            )


def _check_assumption(kind: PolicyKind) -> None:
    """``made_for`` names a click model that is registered."""
    with blaming(kind.start):
        require(
            kind.made_for is None or kind.made_for in CLICK_MODELS,
            f"{kind.name} is registered with made_for={kind.made_for!r}, which is no click model. Known are "
            f"{', '.join(CLICK_MODELS)}; leave made_for out for a policy that assumes none.",
        )


def _check_sources(kind: PolicyKind) -> None:
    verbs = (choose, learn, freeze, has_room, count_issued, advance)
    check_kernels(kind.name, [implemented(verb, kind.policy) for verb in verbs])
    check_functions(kind.name, [home_of(kind.start), home_of(kind.leader)])


def _interpreted(kind: PolicyKind, interpreter: Interpreter) -> PolicyKind:
    parts = {name: getattr(kind, name) for name in ("start", "leader", "grow")}
    return replace(kind, **{name: interpreter.twin(part) for name, part in parts.items() if part is not None})


def _check_sizes(kind: PolicyKind, asked: Setup, rounds: int, seed: int, verbs: Verbs, *, replayed: bool) -> Pages:
    """Play at all sizes; returns the pages of the size that was asked for."""
    how: Any = {"seed": seed, "verbs": verbs, "replayed": replayed}
    pages = _play_at_once(kind, asked, rounds, **how)
    _play_with_late_answers(kind, asked, rounds, **how)
    for items, positions in dict.fromkeys([(asked.n_items, 1), (asked.n_items, asked.n_items), (1, 1)]):
        setup = replace(asked, n_items=items, n_positions=positions, horizon=rounds)
        _play_at_once(kind, setup, rounds, **how)
    return pages


def _play_at_once(kind: PolicyKind, setup: Setup, rounds: int, **how: Any) -> Pages:
    """Answer every page before the next one, twice from the start: both must be the same."""
    first, again = Trial(kind, setup, **how), Trial(kind, setup, **how)
    with blaming(kind.start):
        shared = shared_field(first.state, again.state)
        require(
            shared is None,
            f"start() of {kind.name} gives every state the same array as state.{shared}: one run would learn from "
            "another. Let start() make new arrays each time.",
        )
    for trial in (first, again):
        for _ in range(rounds):
            trial.answer(*trial.issue())
    with blaming(kind.start):
        require(
            first.pages == again.pages,
            f"{kind.name} plays other pages when it is started again with the same seed and the same users. Let "
            "start() make new arrays each time, and keep nothing in global variables.",
        )
    return first.pages


def _play_with_late_answers(kind: PolicyKind, setup: Setup, rounds: int, **how: Any) -> None:
    """Have several pages out, lose the first of them and answer the others last come, first served."""
    trial = Trial(kind, setup, **how)
    for _ in range(rounds // _PAGES_OUT):
        pages = [trial.issue() for _ in range(_PAGES_OUT)]
        for impression, clicks in reversed(pages[1:]):
            trial.answer(impression, clicks)


def _check_compiled(kind: PolicyKind, setup: Setup, rounds: int, seed: int, pages: Pages) -> None:
    """Compiled, the policy must play the pages that it played interpreted."""
    trial = Trial(kind, setup, seed, Verbs(), replayed=False)
    for page in range(rounds):
        trial.answer(*trial.issue())
        with blaming(implemented(choose, kind.policy)):
            require(trial.pages[page] == pages[page], differently_compiled(kind.name, page + 1))


def differently_compiled(name: str, page: int) -> str:
    """The sentence on a policy whose compiled code does something else than its Python code."""
    return (
        f"choose() or learn() of {name} does something else compiled than interpreted, on page {page}. Numba takes "
        "global variables for constants, and treats unsigned numbers in its own way (0 - 1 of an item; uint64 mixed "
        "with int64 is a float): convert with int() before you subtract, and keep nothing in globals."
    )
