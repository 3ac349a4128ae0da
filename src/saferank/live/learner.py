"""The live state of a policy: items by name, pages out, clicks in, exact bytes. Ranker and service both use it.

It knows no threads, no identity of pages and no randomness of its own: the caller brings the random words, keeps the
pages, and decides which of them are learnt, and when.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saferank import saved_state
from saferank.live.explanation import Explanation, decided, duel, explain
from saferank.live.page import Item, Page, Risk
from saferank.live.ranges import check_ranges
from saferank.live.replay import ADVANCED, ISSUED, Pages, Worker, carrying_out, new_desk
from saferank.policies import ContradictionError, PolicyKind, Setup, has_room, make_room, policy_kind
from saferank.policies.shared.derivation import close_ranks
from saferank.randomness import Words
from saferank.safety import whole_allowance
from saferank.saved_state import SavedStateError
from saferank.statistics.certificates import held
from saferank.statistics.decision import decision_rule, whole_horizon
from saferank.verbs import Flags, Impression, Ints, Items

__all__ = ["Certificate", "ContradictionError", "Learner"]


class Certificate(NamedTuple):
    """A pair that was declared decided, and the round of the page that decided it."""

    better: Item
    worse: Item
    round: int


class Learner:
    """A policy at work on named items."""

    def __init__(
        self,
        policy: str,
        *,
        original: Sequence[Item],
        candidates: Sequence[Item] = (),
        rule: str | None = None,
        horizon: int | None = None,
        lifetime: int | None = None,
        examination: Sequence[float] | None = None,
        trust: float | None = None,
    ) -> None:
        self.kind: PolicyKind = policy_kind(policy)
        self.rule = self.kind.default_rule() if rule is None else rule
        self.lifetime = lifetime
        self.horizon = None if horizon is None else whole_horizon(horizon)
        self.items: list[Item] = [*original, *candidates]
        self.kind.check_size(len(self.items))
        self.kind.check_positions(len(original))
        self.index = {item: number for number, item in enumerate(self.items)}
        self.started = len(self.items)  # what a policy starts from may depend on it
        self.kind.check_lifetime(lifetime)
        chosen = decision_rule(self.rule, self.horizon)
        self.kind.check_rule(chosen, live=True)
        self.kind.check_examination(examination, len(original))
        self.kind.check_trust(trust)
        known = None if examination is None else tuple(map(float, examination))
        self.setup = Setup(len(self.items), len(original), chosen, self.horizon, lifetime, known, trust)
        self.policy, self.state = make_room(self.kind, self.setup, *self.kind.begin(self.setup))
        self.present: Flags = np.ones(len(self.items), np.bool_)
        self.base: tuple[int, ...] = tuple(range(len(original)))
        self._worker: Worker | None = None
        self.pinned: tuple[
            int, ...
        ] = ()  # items that stand where production has them; for the policy they are not here

    # --- pages and clicks ---

    def issue(self, rng: Words) -> Impression:
        """The next page."""
        self.advance()
        return self._at_work().choose(rng)

    def advance(self) -> None:
        """Begin the epoch of the next page, if certificates have a lifetime and it is time: the leader may change."""
        self._at_work().do(ADVANCED)

    def count_issued(self) -> None:
        """Count a page as issued without choosing it, as a replay does."""
        self._replayable()
        self._at_work().do(ISSUED)

    def learn(self, impression: Impression, clicks: Ints) -> None:
        """Take the clicks of a page, 0 or 1 for every position that is not pinned, into the statistics."""
        learnt = False
        while not learnt:
            learnt, room = self._at_work(len(clicks), len(impression.ranking)).learn(impression, clicks)
            if not room:
                self._grow()

    def _at_work(self, n_positions: int | None = None, n_places: int = 0) -> Worker:
        shown = self.n_positions - len(self.pinned) if n_positions is None else n_positions
        asked = self.policy, self.state, shown, max(shown, n_places, self.kind.places(self.setup))
        if self._worker is None or not self._worker.fits(*asked):
            self._worker = Worker(*asked)
        return self._worker

    def fold(self, pages: Pages, first: int = 0) -> int:
        """Carry out logged operations from ``first`` on, in order; returns the number of the next one to do.

        It stops early after a learning that gave or dropped a certificate: call it again with what it returns.
        """
        self._replayable()
        before = self._certificate_counts()
        desk = new_desk(self.n_positions, max(pages.ranking.shape[1], self.kind.places(self.setup)))
        desk.done[0] = first
        while True:
            carrying_out(self.policy, self.state, pages, desk)()
            first, room = desk.done.tolist()
            if room:
                return first
            self._grow()
            if self._certificate_counts() != before or first == len(pages.operation):
                return first

    def _certificate_counts(self) -> tuple[int, int]:
        return self.certificates_given(), self.lifetime_alarms()

    # --- what it knows ---

    @property
    def n_positions(self) -> int:
        """How many items a page shows."""
        return self.setup.n_positions

    @property
    def round(self) -> int:
        """How many pages have been issued."""
        return int(self.state.round[0])

    def leader(self) -> tuple[Item, ...]:
        """The current leader (for top-rank and uni-rank the current best guess)."""
        return self.names(self.woven(self._leader_numbers().tolist()))

    def names(self, numbers: Any) -> tuple[Item, ...]:
        """Items by their numbers."""
        return tuple(self.items[number] for number in numbers)

    def is_present(self, item: Item) -> bool:
        """True when the item may be shown."""
        return item in self.index and bool(self.present[self.index[item]])

    def present_items(self) -> tuple[Item, ...]:
        """All items that may be shown, in candidate order."""
        order = self._order()
        return self.names(order[self.present[order]])

    def production(self) -> tuple[Item, ...]:
        """Production's ranking; where an item has left, the others have closed up."""
        return self.names(self._production())

    def woven(self, row: Sequence[int]) -> list[int]:
        """A ranking of the policy's with the pinned items at the places that production's ranking has them at."""
        if not self.pinned:
            return list(row)
        others = iter(row)
        return [int(item) if item in self.pinned else next(others) for item in self._production()]

    def _production(self) -> Items:
        return close_ranks(np.array(self.base), self.present, self._order())

    def candidates(self) -> tuple[Item, ...]:
        """The items outside production's ranking that may be shown, in the order in which untried ones are tried."""
        ranked = set(self.production())
        return tuple(item for item in self.present_items() if item not in ranked)

    def _order(self) -> Items:
        """All items, in candidate order: by their numbers for a policy that does not look at a call's own order."""
        if self.kind.reorder is None:
            return np.arange(len(self.items), dtype=np.uint32)
        order: Items = self.state.order
        return order

    def duel(self, item: Item, other: Item) -> tuple[int, int]:
        """(s, n) of a pair seen from the first item."""
        return duel(self.state, self.index[item], self.index[other])

    def decided(self, item: Item, other: Item) -> bool:
        """True when the first item is surely better."""
        if self.kind.settled is not None and not hasattr(self.policy, "lead_needed"):
            return self.kind.settled(self.state, self.index[item], self.index[other])
        return decided(self.kind, self.setup, self.state, self.index[item], self.index[other])

    def certificates(self) -> list[Certificate]:
        """Every pair that was ever declared decided, in the order in which it happened."""
        if not self.kind.certifies:
            return []
        given = self.state.duels.certificates
        columns = (column[: given.given[0]].tolist() for column in (given.better, given.worse, given.round))
        pairs = zip(*columns, strict=True)
        return [Certificate(self.items[winner], self.items[loser], when) for winner, loser, when in pairs]

    def certificates_given(self) -> int:
        """How many pairs were declared decided so far."""
        return int(self.state.duels.certificates.given[0])

    def valid_certificates(self) -> list[tuple[Item, Item, int]]:
        """The certificates that hold, in the order in which they were given: better and worse item, the last round.

        The last round of one that never ends is at least ``ENDLESS``.
        """
        return [(self.items[i], self.items[j], end) for i, j, end in held(self.state.duels.certificates)]

    def lifetime_alarms(self) -> int:
        """How often certificates with a lifetime were dropped or withdrawn because something contradicted them."""
        return int(self.state.duels.certificates.alarms[0])

    def explain(self, page: Page | None = None) -> Explanation:
        """Why the ranking is as it is."""
        risk = None if self.kind.worst is None else Risk(self._allowance())
        return explain(self.kind, self.setup, self.policy, self.state, self.items, page, risk)

    def risk_of_newest(self) -> Risk | None:
        """What the newest page risks; None for a policy that does not work out the worst case."""
        return None if self.kind.worst is None else Risk(self._allowance(), self.kind.worst(self.state))

    def _allowance(self) -> int:
        return whole_allowance(int(self.present.sum()) - len(self.pinned), self.n_positions - len(self.pinned))

    # --- items and production's ranking change ---

    def regroup(self, present: Flags, new: Sequence[Item] = ()) -> None:
        """Let exactly the flagged items take part; ``new`` ones are numbered after all others."""
        self.kind.check_size(len(present))
        setup = replace(self.setup, n_items=len(present))
        state = self.kind.regroup(self.policy, self.state, present)  # type: ignore[misc]
        self.policy, self.state = make_room(self.kind, setup, self.policy, state)
        self.setup, self.present = setup, present
        self.index |= {item: len(self.items) + place for place, item in enumerate(new)}
        self.items += new

    def rebase(self, base: Sequence[Item], candidates: Sequence[Item] = ()) -> None:
        """Production's ranking and the candidates are these now; the first ``n_positions`` of ``base`` are ranked.

        Untried items are tried in the order in which they are given, if the policy looks at it (``reorder``).
        A leader whose items are all here is kept while production's ranking is the same. Otherwise it is derived
        again from it by certified swaps, each of which removes a wrongly ordered pair at least, so that it is not worse
        than the ranking it was given. Raises ContradictionError when certificates contradict each other: the items are
        those of the call even then, but the leader is not to be used.
        """
        self._replayable()
        here = dict.fromkeys([*base, *candidates])
        new = [item for item in here if item not in self.index]
        numbers = [self.index[item] for item in here if item in self.index]
        present = np.zeros(len(self.items) + len(new), np.bool_)
        present[numbers] = present[len(self.items) :] = True
        stays = bool(present[self._leader_numbers()].all())
        if new or not np.array_equal(present, self.present):
            self.regroup(present, new)
        self.reorder(list(here))
        ranked = tuple(self.index[item] for item in base[: self.n_positions])
        if ranked != self.base or not stays:
            self.base = ranked
            self.state = self.kind.rebuild(self.policy, self.state, np.array(ranked, np.uint32))  # type: ignore[misc]
            self._make_room()

    def reorder(self, first: Sequence[Item]) -> None:
        """Try untried items in this order, then those that are not named in the order that they had.

        Nothing for a policy that does not look at it.
        """
        numbers, before = [self.index[item] for item in first], self._order()
        order = np.array([*numbers, *before[~np.isin(before, numbers)]], np.uint32)
        if self.kind.reorder is not None and not np.array_equal(order, before):
            self.state = self.kind.reorder(self.policy, self.state, order)
            self._make_room()

    def pin(self, items: Sequence[Item]) -> None:
        """Let exactly these items of production's ranking stand where it has them, on this page and those after it.

        The policy ranks the others around them: it has so many places and so many items fewer, and what it promises it
        promises of those. What is known of pinned items stays for the time when they are not.
        """
        pinned = tuple(sorted(self.index[item] for item in items))
        if pinned != self.pinned:
            self.pinned = pinned
            self.state = self._around_pins(self.state)
            self._make_room()

    def _around_pins(self, state: Any) -> Any:
        present, ranked = self.present.copy(), self._production()
        present[list(self.pinned)] = False
        state = self.kind.regroup(self.policy, state, present)  # type: ignore[misc]
        return self.kind.rebuild(self.policy, state, ranked[~np.isin(ranked, self.pinned)])  # type: ignore[misc]

    # --- exact bytes ---

    def canonical(self) -> bytes:
        """Bytes that are equal for two learners exactly when they have been through the same issues and learnings.

        Left out is what choosing a page keeps for its own speed.
        """
        arrays = dict(saved_state.flatten(self.state))
        left_out = ("horizon", *self.kind.caches)
        kept = {name: array for name, array in arrays.items() if name.partition(".")[0] not in left_out}
        kept["leader"] = self._leader_numbers()
        return saved_state.to_bytes(self.facts(), {**kept, "present": self.present})

    def save(self) -> bytes:
        """The whole learner; ``load`` gives one that behaves the same."""
        return saved_state.to_bytes(self.facts(), self.arrays())

    def arrays(self) -> saved_state.Arrays:
        """Every array of the state, by name."""
        arrays = {f"state.{name}": array for name, array in saved_state.flatten(self.state)}
        if "state.horizon" in arrays:  # says how long this process's table of the rule is; set again when loaded
            arrays["state.horizon"] = np.zeros(1, np.int64)
        return {**arrays, "present": self.present}

    def facts(self) -> dict[str, Any]:
        """What the arrays do not say, as JSON."""
        return {
            "policy": self.kind.name,
            "rule": self.rule,
            "horizon": self.horizon,
            "n_positions": self.n_positions,
            "items": self.items,
            "base": self.base,
            **({} if self.started == len(self.items) else {"started": self.started}),
            **({} if not self.pinned else {"pinned": self.pinned}),
            **({} if self.lifetime is None else {"lifetime": self.lifetime}),
            **({} if self.setup.examination is None else {"examination": self.setup.examination}),
            **({} if self.setup.trust is None else {"trust": self.setup.trust}),
        }

    @classmethod
    def load(cls, data: bytes) -> "Learner":
        """The learner that was saved; SavedStateError for foreign, damaged or newer bytes."""
        facts, arrays = saved_state.from_bytes(data)
        try:
            return cls.restored(facts, arrays)
        except saved_state.IMPOSSIBLE as problem:
            raise SavedStateError(f"the saved learner cannot be restored: {problem}") from problem

    @classmethod
    def restored(cls, facts: dict[str, Any], arrays: saved_state.Arrays) -> "Learner":
        """The learner with these facts and arrays; what is wrong with them is raised as it is found."""
        items, size = facts["items"], int(facts["n_positions"])
        if not 1 <= size <= len(set(items)) == len(items):
            raise ValueError(f"{size} positions for {len(set(items))} different items of {len(items)}")
        options = {"rule": facts["rule"], "horizon": facts["horizon"]}
        options |= {name: facts.get(name) for name in ("lifetime", "examination", "trust")}
        started, present = int(facts.get("started", len(items))), arrays["present"]
        if present.shape != (len(items),) or not size <= started <= len(items) or np.count_nonzero(present) < size:
            raise ValueError("its arrays do not belong together")
        base, pinned = (
            _different(facts.get(name, default), len(items))
            for name, default in (("base", range(size)), ("pinned", ()))
        )
        learner = cls(facts["policy"], original=items[:size], candidates=items[size:started], **options)
        if (
            len(base) != size
            or len(pinned) >= size
            or (pinned and not learner.kind.pins)
            or not present[list(pinned)].all()
        ):
            raise ValueError("its rankings do not belong to its items")
        learner.pinned, learner.base = pinned, base
        learner._fill(items[started:], present, arrays)
        here = present.copy()
        here[list(pinned)] = False
        check_ranges(learner.state, here, size - len(pinned))
        learner._make_room()
        return learner

    # --- inside ---

    def _fill(self, new: list[Item], present: Flags, arrays: saved_state.Arrays) -> None:
        """Take the arrays of a saved state in, after a short version of what items have come and gone.

        A policy may have several forms of state, and which one it has depends on how many items are here and were.
        """
        state = {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}
        if not new and bool(present.all()):
            self.state = saved_state.rebuild(self._around_pins(self.state) if self.pinned else self.state, state)
            return
        everybody = np.ones(len(present), np.bool_)
        self.regroup(everybody, new)
        many = self.state
        self.regroup(present)
        for model in (self.state, self._regrouped_from_start(present), many):
            try:
                self.state = saved_state.rebuild(self._around_pins(model) if self.pinned else model, state)
            except SavedStateError as problem:
                unfit = problem
            else:
                return
        raise unfit

    def _regrouped_from_start(self, present: Flags) -> Any:
        """The state of a policy that never had all items at once."""
        setup = replace(self.setup, n_items=self.started)
        policy, state = make_room(self.kind, setup, *self.kind.begin(setup))
        return make_room(self.kind, self.setup, policy, self.kind.regroup(policy, state, present))[1]  # type: ignore[misc]

    def _make_room(self) -> None:
        if not has_room(self.policy, self.state):
            self._grow()

    def _grow(self) -> None:
        self.policy, self.state = make_room(self.kind, self.setup, self.policy, self.state)

    def _leader_numbers(self) -> Ints:
        return np.asarray(self.kind.leader(self.state)[: self.n_positions], np.int64)

    def _replayable(self) -> None:
        if self.kind.rebuild is None:
            raise ValueError(f"policy {self.kind.name} cannot be used here: it has no rebuild (kl-ucb-br has)")


def _different(numbers: Sequence[int], n_items: int) -> tuple[int, ...]:
    """The numbers of different items, from a saved state."""
    if len(set(numbers)) < len(numbers) or not all(0 <= int(number) < n_items for number in numbers):
        raise ValueError(f"{list(numbers)} are not different items of {n_items}")
    return tuple(map(int, numbers))
