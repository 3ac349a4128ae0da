"""The contract of a policy: honest pages, learning without side effects, no memory outside policy and state."""

from typing import Any

import numpy as np

from saferank._kernel import CompilationError, implemented, why_not_compiled
from saferank.checks.contract import ContractError, require
from saferank.checks.page import GuardedPage, check_leader, check_page, contents_of_page, copied_impression
from saferank.checks.state import copied, duels_of, same, started
from saferank.policies import PolicyKind, Setup, has_room, make_room, policy_kind
from saferank.randomness import Words, stream, uniform
from saferank.statistics.decision import decision_rule
from saferank.verbs import Impression, Ints, choose, learn

_RULE = "paper:0.5"  # so loose that leaders move within a few rounds
_PAGES_OUT = 3


def check_policy(
    kind: str | PolicyKind, n_items: int = 6, n_positions: int = 3, rounds: int = 200, seed: int = 0
) -> None:
    """Raise a ``ContractError`` unless the policy keeps the contract of a policy.

    It plays ``rounds`` pages on the given size, as a live ranker without a horizon and with answers that come late or
    never, and again with one position, with every item on the page, and with a single item. The seeds are fixed: a
    verdict never changes.

    >>> check_policy("kl-ucb-br", n_items=4, n_positions=2, rounds=50)
    """
    kind = policy_kind(kind) if isinstance(kind, str) else kind
    for verb in (choose, learn):
        require(
            implemented(verb, kind.policy) is not None,
            f"{verb.__name__}() is not implemented for {kind.policy.__name__}. Decorate a function with "
            f"@implements({verb.__name__}, {kind.policy.__name__}).",
        )
    rule = decision_rule(_RULE)
    asked = Setup(n_items, n_positions, rule)
    _play_at_once(kind, asked, rounds, seed)
    _play_with_late_answers(kind, asked, rounds, seed)
    for items, positions in dict.fromkeys([(n_items, 1), (n_items, n_items), (1, 1)]):
        _play_at_once(kind, Setup(items, positions, rule, horizon=rounds), rounds, seed)


def _play_at_once(kind: PolicyKind, setup: Setup, rounds: int, seed: int) -> None:
    """Answer every page before the next one, twice from the start: both must be the same."""
    first, again = _Trial(kind, setup, seed), _Trial(kind, setup, seed)
    for trial in (first, again):
        for _ in range(rounds):
            trial.answer(*trial.issue())
    require(
        first.pages == again.pages,
        f"{kind.name} plays other pages when it is started again with the same seed and the same users. Let start() "
        "make new arrays each time, and keep nothing in global variables.",
    )


def _play_with_late_answers(kind: PolicyKind, setup: Setup, rounds: int, seed: int) -> None:
    """Have several pages out, lose the first of them and answer the others last come, first served."""
    trial = _Trial(kind, setup, seed)
    for _ in range(rounds // _PAGES_OUT):
        pages = [trial.issue() for _ in range(_PAGES_OUT)]
        for impression, clicks in reversed(pages[1:]):
            trial.answer(impression, clicks)


class _Trial:
    """A policy at work under observation."""

    def __init__(self, kind: PolicyKind, setup: Setup, seed: int) -> None:
        self.kind, self.setup = kind, setup
        self.policy, self.state = started(kind, setup)
        self.rng, self.users = stream(seed, "checked policy"), stream(seed, "checked users")
        self.page = GuardedPage(kind, setup)
        self.pages: list[list[list[int]]] = []

    def issue(self) -> tuple[Impression, Ints]:
        """The next page, checked, in arrays of its own, and how its user clicks."""
        self._make_room()
        policy, state, rng, number = copied(self.policy), copied(self.state), self.rng.copy(), len(self.pages) + 1
        self._call(choose, self.state, self.rng, self.page.impression)
        check_page(f"choose() of {self.kind.name}", self.page, self.setup, number)
        require(
            self.state.round[0] == number,
            f"The state of {self.kind.name} says round {self.state.round[0]} on page {number}; choose() must count it.",
        )
        self._check_nothing_learnt(policy, state)
        self._check_choosing_again(state, rng)
        self.pages.append(contents_of_page(self.page.impression))
        return copied_impression(self.page.impression), self._clicks(number)

    def answer(self, impression: Impression, clicks: Ints) -> None:
        """Have the policy learn from a page, and check what that does."""
        self._make_room()
        policy, state = copied(self.policy), copied(self.state)
        page, answers = copied_impression(impression), clicks.copy()
        self._call(learn, self.state, impression, clicks)
        who = f"learn() of {self.kind.name}"
        require(same(impression, page), f"{who} writes into the impression, which others keep. Copy what you need.")
        require(same(clicks, answers), f"{who} writes into the clicks. Copy what you need.")
        require(same(self.policy, policy), f"{who} changes the policy. What changes belongs into the state.")
        require(
            bool(clicks.any()) or same(duels_of(self.state), duels_of(state)),
            f"{who} changes the duels after a page without clicks, on which nobody won.",
        )
        self._call(learn, state, page, answers)
        require(
            same(self.state, state),
            f"{who} does something else for a copy of the same state, page and clicks. Use no randomness, remember "
            "nothing outside the state, and give every field of the state an array of its own.",
        )

    def _check_nothing_learnt(self, policy: Any, state: Any) -> None:
        """Choosing may count and note, no more; ``policy`` and ``state`` are copies from before."""
        who, leader = f"choose() of {self.kind.name}", check_leader(self.kind, state, self.setup)
        require(same(self.policy, policy), f"{who} changes the policy. What changes belongs into the state.")
        require(
            same(duels_of(self.state), duels_of(state)),
            f"{who} changes the duels. Only learn() may, when the clicks are known.",
        )
        require(
            check_leader(self.kind, self.state, self.setup) == leader,
            f"{who} changes the leader. Only learn() may, when the clicks are known.",
        )

    def _check_choosing_again(self, state: Any, rng: Words) -> None:
        """A copy of the state and of the generator from before must do the same on a new page."""
        page = GuardedPage(self.kind, self.setup).impression
        self._call(choose, state, rng, page)
        same_page = contents_of_page(self.page.impression) == contents_of_page(page)
        require(
            same_page and same((self.state, self.rng), (state, rng)),
            f"choose() of {self.kind.name} does something else for a copy of the same state and generator on a new "
            "page. Draw from rng alone, remember nothing outside the state, give every field of the state an array of "
            "its own, and write every entry of the page each time.",
        )

    def _make_room(self) -> None:
        self.policy, self.state = make_room(self.kind, self.setup, self.policy, self.state)
        require(
            has_room(self.policy, self.state),
            f"has_room() of {self.kind.name} is false although make_room() has just been called: a simulation would "
            "never end. make_room() lets duels, leaders and lead_needed grow; size everything else in start().",
        )

    def _call(self, verb: Any, state: Any, *arguments: Any) -> None:
        try:
            verb(self.policy, state, *arguments)
        except CompilationError as problem:
            raise ContractError(
                f"{verb.__name__}() of {self.kind.name} does not compile: {why_not_compiled(problem)}"
            ) from problem
        except Exception as problem:
            raise ContractError(
                f"{verb.__name__}() of {self.kind.name} fails with n_items={self.setup.n_items}, "
                f"n_positions={self.setup.n_positions}, after {len(self.pages)} pages: "
                f"{type(problem).__name__}: {problem}."
            ) from problem

    def _clicks(self, number: int) -> Ints:
        """A user who likes late items better; now and then one who clicks on nothing, or on everything."""
        if number % 7 in (0, 3):
            return np.full(self.setup.n_positions, np.int64(number % 7 == 3))
        taste = 0.2 + 0.6 * self.page.impression.shown / self.setup.n_items
        return np.array([uniform(self.users) < t for t in taste], np.int64)
