"""The rank call: which page to show. Nothing here waits for the disk."""

import os
from typing import NamedTuple

from saferank.service import identifiers
from saferank.service.arms import EXPLORE, FROZEN, HOLDOUT, OFF, REPEAT, SHADOW
from saferank.service.calls import RankAnswer, RankCall
from saferank.service.catalogues import pack_catalogue
from saferank.service.context import Context, Opening
from saferank.service.core import Core
from saferank.service.pages import Facts, OpenPage, pack
from saferank.service.problems import Problem
from saferank.service.proposals import Choice, propose
from saferank.service.serving import ServedPage, answer_of, reopened, served
from saferank.service.sessions import Visitor, visitor
from saferank.service.state import opened_body, to_json
from saferank.store.events import CatalogueRow, ContextRow, Kind


class Randomness(NamedTuple):
    """What one call draws from the operating system: nothing is ever drawn again from the same bytes."""

    impression: bytes
    coins: bytes
    share: bytes


def _draw() -> Randomness:
    drawn = os.urandom(identifiers.RANDOM_BYTES + 40)
    return Randomness(drawn[:10], drawn[10:42], drawn[42:])


class Ranking:
    """Answers rank calls."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show."""
        core, now, drawn = self._core, self._core.now(), _draw()
        context = core.state.by_name.get((tenant, call.context))
        if context is not None and context.k != call.k:
            raise _other_size(context)
        who = visitor(core.session_key, tenant, call.session_id, drawn.share)
        if core.overloaded or len(core.state.open_pages) >= core.settings.max_open_pages:
            return self._unlogged(tenant, call, context, now, drawn, who)
        if context is None:
            context = self._open(tenant, call, now)
        core.close_due(context, now)
        again = self._same_page(context, call, who)
        if again is not None:
            return answer_of(reopened(core.tokens, again), call)
        return answer_of(self._issue(context, call, now, drawn, who), call)

    # --- the same page again ---

    def _same_page(self, context: Context, call: RankCall, who: Visitor) -> OpenPage | None:
        """The page of the same request, or of the same session, while it is open and may still be shown."""
        live = self._mode(context, call) == "live" and context.contradiction is None
        page = None if call.request_id is None else context.requests.get(call.request_id)
        if page is None and live:
            page = context.sessions.get(who.session)
        return page if page is not None and _may_be_shown(page, call, live) else None

    def _mode(self, context: Context, call: RankCall) -> str:
        if context.killed is not None or context.tenant in self._core.state.killed:
            return "off"
        return call.mode or self._core.settings.mode

    # --- a new page ---

    def _issue(self, context: Context, call: RankCall, now: int, drawn: Randomness, who: Visitor) -> ServedPage:
        arm = self._arm(context, call, who)
        if arm not in (EXPLORE, REPEAT, SHADOW):
            return self._production(context, call, now, drawn, who, arm)
        self._follow_catalogue(context, call, now)
        if context.contradiction is not None:
            return self._production(context, call, now, drawn, who, FROZEN)
        choice = propose(context, drawn.coins, counted=arm == EXPLORE)
        if choice.verdict.fault is not None:
            self._alarm(context, now, choice)
            return self._production(context, call, now, drawn, who, OFF)
        shown = tuple(call.base_ranking[: call.k]) if arm == SHADOW else ()
        facts = _facts(context, call, drawn, who, arm, choice, shown)
        return self._log(context, facts, now, drawn)

    def _arm(self, context: Context, call: RankCall, who: Visitor) -> int:
        mode = self._mode(context, call)
        if mode == "off":
            return OFF
        if context.contradiction is not None:
            return FROZEN
        if mode == "shadow":
            return SHADOW
        if who.share < self._core.settings.holdout_share:
            return HOLDOUT
        return REPEAT if who.session in context.sessions or call.request_id in context.requests else EXPLORE

    def _production(
        self, context: Context, call: RankCall, now: int, drawn: Randomness, who: Visitor, arm: int
    ) -> ServedPage:
        facts = _facts(context, call, drawn, who, arm, None, tuple(call.base_ranking[: call.k]))
        return self._log(context, facts, now, drawn)

    def _log(self, context: Context, facts: Facts, now: int, drawn: Randomness) -> ServedPage:
        core, impression = self._core, identifiers.new_id(now, drawn.impression)
        event = core.write(Kind.PAGE, context.number, now, impression, pack(facts))
        core.state.page(event, chosen=True)
        core.counts["pages_total"] += 1
        core.counts["pages_counted_total"] += facts.counted
        return served(core.tokens, context.tenant, context.name, impression, facts, context.items)

    def _unlogged(
        self, tenant: str, call: RankCall, context: Context | None, now: int, drawn: Randomness, who: Visitor
    ) -> RankAnswer:
        """Production's page while nothing can be written; its token brings it back if clicks come."""
        window = self._core.window_ms if context is None else context.window_ms
        version = 0 if context is None else context.version
        facts = Facts(
            arm=OFF, counted=False, recovered=False, round=0, leader_version=version, window_ms=window, exchanged=0,
            n_shown=call.k, numbers=(), group_ends=(), challenger=None, session=who.session, coins=drawn.coins,
            request_id=None, names=tuple(call.base_ranking[: call.k]),
        )  # fmt: skip
        impression = identifiers.new_id(now, drawn.impression)
        return answer_of(served(self._core.tokens, tenant, call.context, impression, facts, []), call)

    # --- contexts and catalogues ---

    def _open(self, tenant: str, call: RankCall, now: int) -> Context:
        settings = self._core.settings
        opening = Opening(call.k, settings.policy, settings.rule, self._core.window_ms)
        return open_context(self._core, tenant, call.context, opening, (call.base_ranking, call.candidates), now)

    def _follow_catalogue(self, context: Context, call: RankCall, now: int) -> None:
        if context.base != call.base_ranking or context.candidates != call.candidates:
            change_catalogue(self._core, context, (call.base_ranking, call.candidates), now)

    def _alarm(self, context: Context, now: int, choice: Choice) -> None:
        core = self._core
        core.alarm("illegal_page", context, choice.verdict.fault or "")
        event = core.write(Kind.ALARM, context.number, now, body=to_json({"fault": choice.verdict.fault}))
        core.state.alarm(event)


def open_context(
    core: Core, tenant: str, name: str, opening: Opening, lists: tuple[list[str], list[str]], now: int
) -> Context:
    """A context that was not known before; Problem 422 when the tenant has too many."""
    if core.state.contexts_of[tenant] >= core.settings.max_contexts:
        detail = f"tenant {tenant} has {core.settings.max_contexts} contexts, as many as it may (max_contexts)"
        raise Problem(422, "Too many contexts", detail, "context")
    number = len(core.state.contexts) + 1
    core.journal.batch.contexts.append(ContextRow(number, tenant, name))
    event = core.write(Kind.OPENED, number, now, body=opened_body(tenant, name, opening, lists))
    return core.state.opened(event)


def change_catalogue(core: Core, context: Context, lists: tuple[list[str], list[str]], now: int) -> None:
    """Another base ranking, or other candidates."""
    row = CatalogueRow(*pack_catalogue(*lists))
    core.journal.batch.catalogues.append(row)
    event = core.write(Kind.CATALOGUE, context.number, now, body=row.digest)
    core.state.catalogue(event, lists)


def _may_be_shown(page: OpenPage, call: RankCall, live: bool) -> bool:
    """True when a page is still what a call may get: its items are there, and no switch asks for production's page."""
    shown = page.shown()
    if page.arm not in (EXPLORE, REPEAT):
        return list(shown) == call.base_ranking[: call.k]
    if not live:
        return False
    context = page.context
    if context.base == call.base_ranking and context.candidates == call.candidates:
        return context.available.issuperset(shown)
    return frozenset(call.base_ranking).union(call.candidates).issuperset(shown)


def _facts(
    context: Context, call: RankCall, drawn: Randomness, who: Visitor, arm: int, choice: Choice | None,
    names: tuple[str, ...],
) -> Facts:  # fmt: skip
    return Facts(
        arm=arm,
        counted=arm == EXPLORE,
        recovered=False,
        round=choice.round if choice else context.learner.round,
        leader_version=context.version,
        window_ms=context.window_ms,
        exchanged=choice.verdict.exchanged if choice else 0,
        n_shown=context.k,
        numbers=choice.numbers if choice else (),
        group_ends=choice.group_ends if choice else (),
        challenger=choice.challenger if choice else None,
        session=who.session,
        coins=drawn.coins,
        request_id=call.request_id,
        names=names,
    )


def _other_size(context: Context) -> Problem:
    detail = f"context {context.name} has k = {context.k}; use another context name for another page size"
    return Problem(422, "Other page size", detail, "k")
