"""The state of the whole service as the fold of the log: one method for each kind of event.

The live service calls the same methods when it writes an event, so a restart and a replay cannot differ from it.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from saferank.learner import Learner
from saferank.service.context import Context, Opening, SavedContext, Switch, Watcher
from saferank.service.pages import OpenPage
from saferank.store.events import Event, Kind

Catalogue = tuple[list[str], list[str]]


class State:
    """All contexts, their open pages, and the switches of tenants."""

    def __init__(
        self,
        watcher: Watcher,
        find_catalogue: Callable[[bytes], Catalogue],
        find_version: Callable[[Context, int], SavedContext],
    ) -> None:
        self.contexts: dict[int, Context] = {}
        self.by_name: dict[tuple[str, str], Context] = {}
        self.contexts_of: Counter[str] = Counter()  # by tenant
        self.open_pages: dict[bytes, OpenPage] = {}
        self.killed: dict[str, Switch] = {}
        self.watcher = watcher
        self._find_catalogue, self._find_version = find_catalogue, find_version
        self._carry_out: dict[int, Callable[[Event], Any]] = {
            Kind.PAGE: self.page,
            Kind.CLICKS: self.clicks,
            Kind.OPENED: self.opened,
            Kind.CATALOGUE: self.catalogue,
            Kind.CLOSED: self.closed,
            Kind.KILL: self.kill,
            Kind.UNKILL: self.kill,
            Kind.ROLLBACK: self.rollback,
            Kind.FROZEN: self.frozen,
            Kind.ALARM: self.alarm,
        }

    def apply(self, event: Event) -> None:
        """Carry out an event. What it makes to be learnt waits for ``settle`` of its context."""
        self._carry_out[event.kind](event)

    def settle(self) -> None:
        """Carry out everything that waits."""
        for context in self.contexts.values():
            context.settle()

    def add(self, context: Context) -> None:
        """A context is known from now on."""
        self.contexts[context.number] = context
        self.by_name[context.tenant, context.name] = context
        self.contexts_of[context.tenant] += 1

    # --- one method for each kind of event ---

    def page(self, event: Event, *, chosen: bool = False) -> OpenPage:
        """A page was issued."""
        assert event.impression is not None and event.body is not None
        context = self.contexts[event.context]
        page = OpenPage(context, event.seq, event.impression, event.body)
        context.add_page(page, event.at, chosen=chosen)
        return page

    def clicks(self, event: Event) -> None:
        """Clicks arrived for an open page."""
        assert event.impression is not None
        page = self.open_pages[event.impression]
        page.clicks |= int.from_bytes(event.body or b"", "little")
        page.last_click_seq = event.seq

    def opened(self, event: Event) -> Context:
        """A context was used for the first time."""
        facts = _facts(event)
        opening, base, candidates = Opening(*facts["opening"]), facts["base"], facts["candidates"]
        listed = list(dict.fromkeys([*base, *candidates]))
        learner = Learner(
            opening.policy, original=listed[: opening.k], candidates=listed[opening.k :], rule=opening.rule
        )
        context = Context(
            event.context, facts["tenant"], facts["name"], opening, learner, self.watcher, self.open_pages
        )
        context.set_catalogue(base, candidates)
        self.add(context)
        context.follow_leader("opened", event.seq, event.at, base[: opening.k])
        return context

    def catalogue(self, event: Event, lists: Catalogue | None = None) -> None:
        """Production's ranking or the candidates of a context changed."""
        assert event.body is not None
        base, candidates = lists or self._find_catalogue(event.body)
        self.contexts[event.context].rebase(base, candidates, event.seq, event.at)

    def closed(self, event: Event) -> int:
        """Whatever was due in a context was closed."""
        return self.contexts[event.context].close_due(event.seq, event.at)

    def kill(self, event: Event) -> None:
        """A switch was turned on or off."""
        facts = _facts(event)
        switch = Switch(event.at, facts["why"]) if event.kind == Kind.KILL else None
        if event.context:
            self.contexts[event.context].killed = switch
        elif switch is not None:
            self.killed[facts["tenant"]] = switch
        else:
            self.killed.pop(facts["tenant"], None)

    def rollback(self, event: Event, saved: SavedContext | None = None) -> None:
        """A context went back to an earlier leader."""
        facts, context = _facts(event), self.contexts[event.context]
        context.settle()
        context.roll_back(saved or self._find_version(context, facts["version"]), event.seq, event.at, facts["why"])

    def frozen(self, event: Event) -> None:
        """A context was found to be contradictory: derived, so there is nothing left to do but to be up to date."""
        self.contexts[event.context].settle()

    def alarm(self, event: Event) -> None:
        """A page did not pass the serving check."""
        self.contexts[event.context].alarms["illegal_page"] += 1


def opened_body(context_tenant: str, name: str, opening: Opening, lists: Catalogue) -> bytes:
    """The body of an OPENED event."""
    facts = {"tenant": context_tenant, "name": name, "opening": opening, "base": lists[0], "candidates": lists[1]}
    return to_json(facts)


def to_json(facts: object) -> bytes:
    """The body of a rare event."""
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _facts(event: Event) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(event.body or b"{}")
    return facts
