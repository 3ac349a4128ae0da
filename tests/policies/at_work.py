"""A policy at work as the simulator has it: evidence, a plan that is kept, and pages that are numbered from 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from saferank.policies import PolicyKind, Setup, make_room, make_room_in_plan
from saferank.randomness import Words
from saferank.verbs import (
    Call,
    Impression,
    Ints,
    advance,
    choose,
    follow,
    freeze,
    learn,
    new_impression,
    renew,
)


class AtWork:
    """Fields of evidence and plan are read as if they were its own."""

    def __init__(self, kind: PolicyKind, setup: Setup, call: Call | None = None) -> None:
        self.kind, self.setup, self.issued, self.known = kind, setup, 0, setup.n_items
        self.policy, self.evidence = kind.start(setup)
        self.plan = kind.plan_for(self.policy, self.evidence, setup.first_call() if call is None else call)
        self._make_room(setup.n_positions + 1)

    def __getattr__(self, name: str) -> Any:
        if name in ("evidence", "plan"):
            raise AttributeError(name)
        return getattr(self.evidence if hasattr(self.evidence, name) else self.plan, name)

    def _make_room(self, places: int) -> None:
        self.policy, self.evidence = make_room(self.kind, self.setup, self.policy, self.evidence, places)
        self.plan = make_room_in_plan(self.plan)

    def blank(self) -> Impression:
        """A page with the room that the simulator gives."""
        return new_impression(self.setup.n_positions, self.kind.places(self.setup.n_items, self.setup.n_positions))

    def choose(self, rng: Words, impression: Impression) -> None:
        """Draw the next page."""
        self._make_room(len(impression.ranking))
        if advance(self.policy, self.evidence, self.issued):
            renew(self.policy, self.evidence, self.plan, self.issued)
        self.issued += 1
        impression.round[0] = self.issued
        choose(self.policy, self.evidence, self.plan, rng, impression)

    def freeze(self, impression: Impression) -> None:
        """Freeze a page at all places, as a live page is."""
        freeze(self.policy, self.evidence, self.plan, impression, np.ones(len(impression.shown), np.int64))

    def learn(self, impression: Impression, clicks: Ints, *, frozen: bool = False) -> None:
        """Learn the clicks of a page; one that was not ``frozen`` when it was issued is now, as the simulator does."""
        self._make_room(len(impression.ranking))
        if not frozen:
            freeze(self.policy, self.evidence, self.plan, impression, clicks)
        learn(self.policy, self.evidence, impression, clicks)
        follow(self.policy, self.evidence, self.plan, impression, clicks, self.issued)

    def issue(self, rng: Words) -> Impression:
        """The next page, as a live ranker issues it: in arrays of its own, frozen at all places."""
        n_positions = len(self.plan.base)
        n_items = n_positions + len(self.plan.candidates)
        page = new_impression(n_positions, max(n_positions, self.kind.places(n_items, n_positions)))
        self.choose(rng, page)
        self.freeze(page)
        return page

    def call(self, base: Sequence[int], others: Sequence[int]) -> None:
        """Go on with the plan of another call, whose items may be new."""
        n_items = max(self.known, 1 + max([*base, *others]))
        if n_items > self.known:
            assert self.kind.with_items is not None
            self.evidence, self.known = self.kind.with_items(self.evidence, n_items), n_items
        call = Call(np.array(base, np.uint32), np.array(others, np.uint32))
        self.plan = self.kind.plan_for(self.policy, self.evidence, call, self.issued)

    def leader(self) -> Ints:
        """The present leader."""
        return self.kind.leader(self.evidence, self.plan)
