"""The evidence of a policy about named items: pages and clicks in, plans out, exact bytes. Ranker and service use it.

It knows no call, no threads, no identity of pages and no randomness: the caller keeps the plans, draws the pages, and
decides which of them are learnt, and when.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saferank import saved_state
from saferank.live.page import Item
from saferank.live.ranges import check_ranges
from saferank.live.replay import Pages, Workspace, folding, new_pages, new_workspace, put_in
from saferank.policies import PolicyKind, Setup, make_room, policy_kind
from saferank.saved_state import SavedStateError
from saferank.statistics.certificates import held
from saferank.statistics.decision import decision_rule, whole_horizon
from saferank.statistics.pairs import duel_of
from saferank.verbs import Call, Impression, Ints, advance

__all__ = ["Certificate", "Learner"]


class Certificate(NamedTuple):
    """A pair that was declared decided, and the round of the page that decided it."""

    better: Item
    worse: Item
    round: int


class Learner:
    """What a policy has learnt of named items. It begins with the items and the page size of a first call."""

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
        self.kind.check_lifetime(lifetime)
        chosen = decision_rule(self.rule, self.horizon)
        self.kind.check_rule(chosen, live=True)
        self.kind.check_examination(examination, len(original))
        self.kind.check_trust(trust)
        known = None if examination is None else tuple(map(float, examination))
        self.setup = Setup(len(self.items), len(original), chosen, self.horizon, lifetime, known, trust)
        self.policy, self.evidence = self.kind.begin(self.setup)
        self._make_room(self.kind.places(len(self.items), len(original)))
        self._one_page: tuple[Pages, Workspace] | None = None
        self._folding: tuple[tuple[Any, ...], Callable[[], None]] | None = None  # what it is bound to, and itself
        self.slots: dict[tuple[int, int], Any] = {}  # plans that a service draws from, by the sizes of their calls

    # --- items and plans ---

    def know(self, items: Iterable[Item]) -> None:
        """Number those of these items that are new; the evidence of the others stays."""
        new = [item for item in dict.fromkeys(items) if item not in self.index]
        if not new:
            return
        n_items = len(self.items) + len(new)
        self.kind.check_size(n_items)
        if self.kind.with_items is None:
            raise ValueError(f"policy {self.kind.name} does not let items come: it has no with_items")
        self.evidence = self.kind.with_items(self.evidence, n_items)
        self.index |= {item: len(self.items) + place for place, item in enumerate(new)}
        self.items += new
        self._make_room(self.kind.places(n_items, self.setup.n_positions))

    def call(self, base: Iterable[Item], candidates: Iterable[Item]) -> Call:
        """A call by the numbers of its items, all of which are known."""
        ranked, others = ([self.index[item] for item in items] for items in (base, candidates))
        return Call(np.array(ranked, np.uint32), np.array(others, np.uint32))

    def plan(self, call: Call, issued: int) -> Any:
        """The plan of a call, after ``issued`` pages."""
        return self.kind.plan_for(self.policy, self.evidence, call, issued)

    def places(self, call: Call) -> int:
        """How many places a page of a call may compare."""
        n_positions = len(call.base)
        return max(n_positions, self.kind.places(n_positions + len(call.candidates), n_positions))

    # --- pages and clicks ---

    def advance(self, issued: int) -> bool:
        """Begin the epoch of the next page, after ``issued`` pages. True when one began: then plans are outdated."""
        return bool(advance(self.policy, self.evidence, issued))

    def learn(self, impression: Impression, clicks: Ints) -> None:
        """Take the clicks of a page, 0 or 1 for every shown position, into the evidence."""
        n_places = len(impression.ranking)
        if self._one_page is None or self._one_page[0].ranking.shape != (1, n_places):
            self._one_page = new_pages(1, n_places, n_places), new_workspace(n_places, n_places)
        put_in(self._one_page[0], impression, clicks)
        self.fold(*self._one_page)

    def fold(self, pages: Pages, workspace: Workspace, first: int = 0, end: int | None = None) -> int:
        """Learn pages from ``first`` to ``end``, in order; returns the number of the next one to learn.

        It stops early after a page that gave or dropped a certificate: call it again with what it returns.
        """
        workspace.done[0], workspace.done[2] = first, len(pages.round) if end is None else end
        while True:
            self._bound_folding(pages, workspace)()
            first, room, _ = workspace.done.tolist()
            if room:
                return int(first)
            self._make_room(int(pages.places[first]))  # by page: it must not matter which pages are learnt together

    def _bound_folding(self, pages: Pages, workspace: Workspace) -> Callable[[], None]:
        """Made again only when something has grown: to bind costs more than to learn a page."""
        to = (self.policy, self.evidence, pages, workspace)
        if self._folding is None or not all(map(operator.is_, self._folding[0], to)):
            self._folding = to, folding(*to)
        return self._folding[1]

    def _make_room(self, places: int) -> None:
        self.policy, self.evidence = make_room(self.kind, self.setup, self.policy, self.evidence, places)

    # --- what it knows ---

    @property
    def n_positions(self) -> int:
        """How many items a page of the first call showed."""
        return self.setup.n_positions

    def names(self, numbers: Any) -> tuple[Item, ...]:
        """Items by their numbers."""
        return tuple([self.items[number] for number in numbers])

    def duel(self, item: Item, other: Item) -> tuple[int, int]:
        """(s, n) of a pair seen from the first item; (0, 0) for a policy that keeps no duels."""
        if not hasattr(self.evidence, "duels"):
            return 0, 0
        wins, losses = duel_of(self.evidence.duels, self.index[item], self.index[other])
        return wins - losses, wins + losses

    def certificates(self) -> list[Certificate]:
        """Every pair that was ever declared decided, in the order in which it happened."""
        if not self.kind.certifies:
            return []
        given = self.evidence.duels.certificates
        columns = (column[: given.given[0]].tolist() for column in (given.better, given.worse, given.round))
        pairs = zip(*columns, strict=True)
        return [Certificate(self.items[winner], self.items[loser], when) for winner, loser, when in pairs]

    def certificates_given(self) -> int:
        """How many pairs were declared decided so far."""
        return int(self.evidence.duels.certificates.given[0])

    def valid_certificates(self) -> list[tuple[Item, Item, int]]:
        """The certificates that hold, in the order in which they were given: better and worse item, the last round.

        The last round of one that never ends is at least ``ENDLESS``.
        """
        return [(self.items[i], self.items[j], end) for i, j, end in held(self.evidence.duels.certificates)]

    def lifetime_alarms(self) -> int:
        """How often certificates with a lifetime were dropped or withdrawn because something contradicted them."""
        return int(self.evidence.duels.certificates.alarms[0]) if self.kind.certifies else 0

    # --- exact bytes ---

    def save(self) -> bytes:
        """The whole learner; ``load`` gives one that behaves the same. Equal if the same pages were learnt."""
        return saved_state.to_bytes(self.facts(), self.arrays())

    def arrays(self) -> saved_state.Arrays:
        """Every array of the evidence, by name."""
        arrays = {f"evidence.{name}": array for name, array in saved_state.flatten(self.evidence)}
        room = {name: np.zeros_like(part) for name, part in arrays.items() if _ROOM.fullmatch(name)}
        return {**arrays, **room}

    def facts(self) -> dict[str, Any]:
        """What the arrays do not say, as JSON; ``evidence`` names the shape of them."""
        return {
            "policy": self.kind.name,
            "evidence": type(self.evidence).__name__,
            "rule": self.rule,
            "horizon": self.horizon,
            "n_positions": self.n_positions,
            "items": self.items,
            **({} if self.setup.n_items == len(self.items) else {"started": self.setup.n_items}),
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
        started = int(facts.get("started", len(items)))
        if not size <= started <= len(items):
            raise ValueError("its arrays do not belong together")
        learner = cls(facts["policy"], original=items[:size], candidates=items[size:started], **options)
        learner.know(items[started:])
        saved_state.check_shape(facts["evidence"], learner.evidence)
        learner.evidence = saved_state.rebuild(learner.evidence, saved_state.below("evidence", arrays))
        check_ranges(learner.evidence, learner.call(items[:size], items[size:]))
        learner._make_room(0)  # for the table of the rule; the others are as they were
        return learner


_ROOM = re.compile(r"evidence\.horizon|evidence\.scratch\..*|.*\.(queue|way)")
"""How long this process's table of the rule is, which is set again when loaded, and room to compute in."""
