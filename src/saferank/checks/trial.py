"""A policy at work under observation: what every page and every learning must do, and must not do."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import CompilationError, implemented, is_foreign, why_not_compiled
from saferank.checks.contract import ContractError, blaming, require
from saferank.checks.ending import ending
from saferank.checks.interpreted import Interpreter
from saferank.checks.page import GuardedPage, check_leader, check_page, contents_of_page, copied_impression
from saferank.checks.promise import Promise
from saferank.checks.state import changed_fields, copied, duels_of, nan_field, same, started
from saferank.plugins import place_of_problem
from saferank.policies import PolicyKind, Setup, count_issued, freeze, has_room, make_room
from saferank.randomness import Words, stream, uniform
from saferank.safety.worst_case import Possible, at_most, certify_seats, new_possible
from saferank.verbs import Impression, Ints, choose, learn

_NOT_REPLAYED = ("horizon",)  # how far the table of a rule reaches: room, nothing that was learnt


class Verbs(NamedTuple):
    """What a trial calls: as it is compiled, or the interpreted twins."""

    choose: Callable[..., None] = choose
    learn: Callable[..., None] = learn
    freeze: Callable[..., None] = freeze
    has_room: Callable[..., bool] = has_room
    make_room: Callable[..., tuple[Any, Any]] = make_room
    count_issued: Callable[..., None] = count_issued
    new_possible: Callable[..., Possible] = new_possible
    certify_seats: Callable[..., None] = certify_seats
    at_most: Callable[..., bool] = at_most


def interpreted_verbs(interpreter: Interpreter) -> Verbs:
    """The verbs as plain Python."""
    twins: Any = [interpreter.twin(verb) for verb in Verbs()]
    return Verbs(*twins)


def _named(fields: list[str]) -> str:
    return ", ".join(f"state.{field}" for field in fields)


class Trial:
    """A policy at work. With ``replayed``, a second state that learns but never chooses must come to know the same."""

    def __init__(self, kind: PolicyKind, setup: Setup, seed: int, verbs: Verbs, replayed: bool) -> None:
        self.kind, self.setup, self.verbs = kind, setup, verbs
        self.stops_loops = is_foreign(kind.policy)
        with blaming(kind.start):
            self.policy, self.state = started(kind, setup)
            unknown = [field for field in kind.caches if replayed and field not in self.state._fields]
            require(not unknown, f"{kind.name} is registered with caches={unknown}, but its state has no such field.")
        self.replayed = copied(self.state) if replayed else None
        self.rng, self.users = stream(seed, "checked policy"), stream(seed, "checked users")
        self.page, self.promise = GuardedPage(kind, setup), Promise(kind, setup, verbs)
        self.pages: list[list[list[int]]] = []

    def issue(self) -> tuple[Impression, Ints]:
        """The next page, checked, in arrays of its own, and how its user clicks."""
        self._make_room()
        policy, state, rng, number = copied(self.policy), copied(self.state), self.rng.copy(), len(self.pages) + 1
        with blaming(implemented(choose, self.kind.policy)):
            self._call(self.verbs.choose, self.state, self.rng, self.page.impression)
            self._call(self.verbs.freeze, self.state, self.page.impression)
            check_page(f"choose() of {self.kind.name}", self.page, self.setup, number)
            self.promise.check(self.state, self.page.impression.shown.tolist())
            self._check_counted(number)
            self._check_nothing_learnt(policy, state)
            rng_before = rng.copy()
            self._check_choosing_again(state, rng)
            self._check_finite("choose")
            self._replay_page(rng_before)
        self.pages.append(contents_of_page(self.page.impression))
        return copied_impression(self.page.impression), self._clicks(number)

    def answer(self, impression: Impression, clicks: Ints) -> None:
        """Have the policy learn from a page, and check what that does."""
        self._make_room()
        policy, state = copied(self.policy), copied(self.state)
        page, answers = copied_impression(impression), clicks.copy()
        who = f"learn() of {self.kind.name}"
        with blaming(implemented(learn, self.kind.policy)):
            self._call(self.verbs.learn, self.state, impression, clicks)
            require(same(impression, page), f"{who} writes into the impression, which others keep. Copy what you need.")
            require(same(clicks, answers), f"{who} writes into the clicks. Copy what you need.")
            require(same(self.policy, policy), f"{who} changes the policy. What changes belongs into the state.")
            require(
                bool(clicks.any()) or same(duels_of(self.state), duels_of(state)),
                f"{who} changes the duels after a page without clicks, on which no item won.",
            )
            self._check_finite("learn")
            self._check_learning_again(state, page, answers)
            self._replay_learning(page, answers)

    def _check_counted(self, number: int) -> None:
        require(
            self.state.round[0] == number,
            f"The state of {self.kind.name} says round {self.state.round[0]} on page {number}; choose() must count it: "
            "state.round[0] += 1.",
        )

    def _check_finite(self, verb: str) -> None:
        field = nan_field(self.state)
        require(
            field is None,
            f"{verb}() of {self.kind.name} leaves NaN in state.{field}: a comparison with it is always false. Test "
            "for zero before you divide, and give log and sqrt no negative numbers.",
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
        self._call(self.verbs.choose, state, rng, page)
        self._call(self.verbs.freeze, state, page)
        same_page = contents_of_page(self.page.impression) == contents_of_page(page)
        require(
            same_page and same((self.state, self.rng), (state, rng)),
            f"choose() of {self.kind.name} does something else for a copy of the same state and generator on a new "
            "page. Draw from rng alone, remember nothing outside the state, give every field of the state an array of "
            "its own, and write every entry of the page each time.",
        )

    def _check_learning_again(self, state: Any, page: Impression, clicks: Ints) -> None:
        """A copy of the state must learn the same, whatever stands in the places of the page that are not in use."""
        page.ranking[int(page.places[0]) :] = self.setup.n_items - 1
        self._call(self.verbs.learn, state, page, clicks)
        require(
            same(self.state, state),
            f"learn() of {self.kind.name} does something else for a copy of the same state, page and clicks. Use no "
            "randomness, remember nothing outside the state, give every field of the state an array of its own, and "
            "read only the first impression.places[0] places of the page: what stands behind them was not compared.",
        )

    def _replay_page(self, rng: Words) -> None:
        """Count the page in the replayed state, as a replay does, and compare."""
        if self.replayed is not None:
            if self.kind.regroup is not None and self.kind.rebuild is not None:
                self._check_choosing_from_replay(rng)
            self._call(self.verbs.count_issued, self.replayed, 1)
            fields = self._differences()
            require(
                not fields,
                f"choose() of {self.kind.name} changes {_named(fields)}, which a replay of the log would not know, and "
                "which counts pages that nobody answered. Change it in learn(); if it counts issued pages, implement "
                "count_issued of saferank.policies too; if it is a note of choose() to itself, register the policy "
                f"with caches={(*self.kind.caches, *fields)}.",
            )

    def _check_choosing_from_replay(self, rng: Words) -> None:
        """A state that learnt but never chose must show the same page, if the policy is made to be served."""
        page = GuardedPage(self.kind, self.setup).impression
        self._call(self.verbs.choose, copied(self.replayed), rng, page)
        require(
            contents_of_page(self.page.impression) == contents_of_page(page),
            f"choose() of {self.kind.name} shows another page from a state that only learnt, as after a restart: it "
            f"reads what choose() wrote before into {_named(list(self.kind.caches))}. Fill it again each time, or "
            "change it in learn(); a policy without regroup and rebuild, which is not served, may keep it.",
        )

    def _replay_learning(self, page: Impression, clicks: Ints) -> None:
        """Learn the page in the replayed state too, and compare."""
        if self.replayed is not None:
            self._call(self.verbs.learn, self.replayed, page, clicks)
            fields = self._differences()
            require(
                not fields,
                f"learn() of {self.kind.name} gives another {_named(fields)} when choose() was not called before it "
                "with this state. Clicks may come late, after newer pages, or from a log: read what was compared "
                "from the impression, not from what choose() left in the state.",
            )

    def _differences(self) -> list[str]:
        """The fields in which the replayed state differs, apart from those that may."""
        left_out = (*_NOT_REPLAYED, *self.kind.caches)
        return [field for field in changed_fields(self.state, self.replayed) if field not in left_out]

    def _make_room(self) -> None:
        if self.replayed is not None:
            _, self.replayed = self.verbs.make_room(self.kind, self.setup, self.policy, self.replayed)
        self.policy, self.state = self.verbs.make_room(self.kind, self.setup, self.policy, self.state)
        require(
            self.verbs.has_room(self.policy, self.state),
            f"has_room() of {self.kind.name} is false although make_room() has just been called: a simulation would "
            "never end. make_room() lets duels, leaders and lead_needed grow; size everything else in start().",
        )

    def _call(self, verb: Any, state: Any, *arguments: Any) -> None:
        if not self.stops_loops:
            self._try(verb, state, *arguments)
            return
        with ending(f"{verb.__name__}() of {self.kind.name}"):
            self._try(verb, state, *arguments)

    def _try(self, verb: Any, state: Any, *arguments: Any) -> None:
        try:
            verb(self.policy, state, *arguments)
        except CompilationError as problem:
            raise ContractError(
                f"{verb.__name__}() of {self.kind.name} does not compile: {why_not_compiled(problem)}"
            ) from problem
        except Exception as problem:
            raise ContractError(self._failure(verb, problem), place_of_problem(problem)) from problem

    def _failure(self, verb: Any, problem: Exception) -> str:
        sizes = f"n_items={self.setup.n_items}, n_positions={self.setup.n_positions}"
        what = f"{verb.__name__}() of {self.kind.name} fails with {sizes}, after {len(self.pages)} pages"
        return f"{what}: {type(problem).__name__}: {problem}.{self._advice(problem)}"

    def _advice(self, problem: Exception) -> str:
        if not isinstance(problem, IndexError):
            return " Mend the line, or refuse such sizes in start() with a sentence."
        room, shown = len(self.page.impression.ranking), self.setup.n_positions
        return (
            f" Compiled code would read or write beyond the array. A page has room for {room} places, of which "
            f"impression.places[0] are in use; clicks has one entry for each shown position ({shown}), and the click "
            "of a hidden place is 0."
        )

    def _clicks(self, number: int) -> Ints:
        """A user who likes late items better; now and then one who clicks on nothing, or on everything."""
        if number % 7 in (1, 3):  # the first page among those without clicks: nothing to divide by
            return np.full(self.setup.n_positions, np.int64(number % 7 == 3))
        taste = 0.2 + 0.6 * self.page.impression.shown / self.setup.n_items
        return np.array([uniform(self.users) < t for t in taste], np.int64)
