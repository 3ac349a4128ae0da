"""The rank call: which page to show. For a context that is in memory nothing has to be waited for."""

import json
import logging
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET

from saferank.policies import policy_kind
from saferank.service import identifiers
from saferank.service.calls.propensities import first_place_chances
from saferank.service.clock import moment
from saferank.service.identifiers import Draws, Visitor, draws_of, visitor
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import ARMS, DAY_MS, EXPLORE, HOLDOUT, OFF, REPEAT, SHADOW
from saferank.service.knowledge.catalogues import Catalogue, digest_of, pack_catalogue
from saferank.service.knowledge.evidence import reversed_pairs
from saferank.service.knowledge.view import View
from saferank.service.protocol.contexts import Context, terms_by_settings
from saferank.service.protocol.server import Server
from saferank.service.wire.calls import Mode, PageNotes, PositionNote, RankAnswer, RankCall, Safety
from saferank.service.wire.problems import Problem
from saferank.store.contract import CatalogueRow, Group, PageRow, StoreError, StoreUnavailableError
from saferank.store.page_record import NO_LAW, OVER, SERVER_SIZE, PageRecord, free_positions


class RankRequest(NamedTuple):
    """A rank call, and what is worked out from it once."""

    tenant: str
    call: RankCall
    now: int
    who: Visitor
    lists: Catalogue
    digest: bytes
    pins: int


class Ranking:
    """Answers rank calls."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def rank(self, tenant: str, call: RankCall) -> RankAnswer:
        """The page to show."""
        server, lists = self._server, (call.base_ranking, call.candidates)
        context = await self._find(tenant, call, lists)
        who = visitor(server.session_key, tenant, call.session_id, call.request_id, call.source)
        request = RankRequest(tenant, call, server.now(), who, lists, digest_of(lists), call.pins)
        if context is None or server.writer.overloaded:
            return self._unlogged(request, context)
        return self._issue(context, request)

    # --- the page ---

    def _issue(self, context: Context, request: RankRequest) -> RankAnswer:
        context.newest = (request.digest, request.lists, request.call.k)
        draws = self._draws(context, request)
        arm = self._arm(context, request, draws.arm)
        if arm != OFF:  # in every arm: what is refused must not depend on it
            _check_positions(context.terms.policy, request.call.k)
        if arm not in (EXPLORE, SHADOW):
            return self._log(context, request, self._production(context, request, arm))
        view = self._view(context, request)
        proposal = view.page(draws.coins)
        if proposal.fault is not None:
            return self._refused(context, request, arm, proposal.fault)
        base = tuple(request.call.base_ranking[: request.call.k])
        record = self._production(context, request, arm)._replace(
            coins=draws.coins,
            round=proposal.round,
            row=proposal.row,
            instead=base if arm == SHADOW else (),
            law=proposal.law,
            challenger=proposal.challenger,
            base=() if arm == SHADOW else base,
            used=proposal.used,
            is_leader=proposal.shown == view.leader,
            pins=request.pins,
        )
        if not self._server.heart.is_fresh():  # the last step: somebody may have pulled a switch meanwhile
            return self._log(context, request, self._production(context, request, arm)._replace(arm=OFF))
        return self._log(context, request, record, () if arm == SHADOW else view.leader)

    def _refused(self, context: Context, request: RankRequest, arm: int, fault: str) -> RankAnswer:
        """Production's page instead of one that must not be shown. Its coin put it there: it keeps its share."""
        self._server.alarm("illegal_page", context, fault)
        return self._log(context, request, self._production(context, request, arm)._replace(arm=OFF, used=OVER))

    def _arm(self, context: Context, request: RankRequest, draw: float) -> int:
        server, mode = self._server, request.call.mode or self._server.mode(context.number)
        stopped = server.switches.is_killed(request.tenant, context.number) or server.contexts.is_set_aside(context)
        undone = server.switches.undoing(context.number, context.fold.operation)  # and acknowledged, but not read yet
        if mode == "off" or stopped or undone or not server.heart.is_fresh():
            return OFF
        if mode == "shadow":
            return SHADOW
        if not server.is_chosen_for(request.tenant, request.who) or self._waits(context, request.now):
            return OFF
        return HOLDOUT if draw < server.holdout_share(context.number) else EXPLORE

    def _waits(self, context: Context, now: int) -> bool:
        if self._server.settings.least_traffic and context.waited[0] != now // DAY_MS:
            context.waited = now // DAY_MS, self._server.waits_for_traffic(context.fold.compared, context.terms)
        return context.waited[1]

    def _draws(self, context: Context, request: RankRequest) -> Draws:
        window = request.now // context.terms.window_ms
        return draws_of(self._server.session_key, request.who, request.tenant, request.call.context, window)

    def _view(self, context: Context, request: RankRequest) -> View:
        call, fold = request.call, context.fold
        if fold.terms.lifetime_ms and fold.terms.epoch_at(request.now - fold.terms.window_ms) > fold.epoch:
            context.stand_in(request.now)
        return self._server.views.view(
            context.number, context.known, request.digest, request.lists, call.k, request.pins
        )

    def _production(self, context: Context | None, request: RankRequest, arm: int) -> PageRecord:
        """The record of production's page."""
        server, call = self._server, request.call
        return PageRecord(
            impression=server.ids.next(request.now),
            tenant=request.tenant,
            context=call.context,
            policy=server.settings.policy if context is None else context.terms.policy,
            arm=arm,
            knowledge=0 if context is None else context.fold.version,
            round=0,
            window_ms=server.window_ms if context is None else context.terms.window_ms,
            k=call.k,
            visitor=request.who.key,
            catalogue=request.digest,
            coins=bytes(32),
            row=(),
            instead=tuple(call.base_ranking[: call.k]),
            law=NO_LAW,
            request_id=call.request_id,
            server=server.run if context is not None else bytes(SERVER_SIZE),
            number=0 if context is None else server.issued + 1,
            share=server.holdout_share(context.number) if context is not None and arm in (EXPLORE, HOLDOUT) else 0.0,
            source=request.who.source,
        )

    def _log(
        self, context: Context, request: RankRequest, record: PageRecord, leader: tuple[str, ...] = ()
    ) -> RankAnswer:
        server, body = self._server, record.packed()
        server.writer.add_catalogue(request.digest, request.lists)
        server.issued += 1
        server.writer.add_page(page_row(record, context.number, body))
        server.counts["pages_total"] += 1
        server.counts["pages_explored_total"] += record.arm == EXPLORE
        return answer_of(record, server.tokens.seal(record.impression, body), leader, request.call)

    def _unlogged(self, request: RankRequest, context: Context | None) -> RankAnswer:
        """Production's page while nothing can be written; its token brings it back if clicks come."""
        record = self._production(context, request, OFF)._replace(server=bytes(SERVER_SIZE), number=0)
        return answer_of(record, self._server.tokens.seal(record.impression, record.packed()), (), request.call)

    # --- contexts ---

    async def _find(self, tenant: str, call: RankCall, lists: Catalogue) -> Context | None:
        """The context of a call, opened if it is new; None while the store does not answer."""
        try:
            context = await self._server.contexts.find(tenant, call.context)
            return context or await open_context(self._server, tenant, call.context, call.k, lists)
        except StoreUnavailableError:
            return None
        except StoreError as problem:  # damage: this context cannot be used, others can
            log(logging.ERROR, "a context cannot be read", tenant=tenant, context=call.context, detail=str(problem))
            return None


def _check_positions(policy: str, k: int) -> None:
    try:
        policy_kind(policy).check_positions(k)
    except ValueError as problem:
        raise Problem(422, "Too many positions", str(problem), "k") from problem


def page_row(record: PageRecord, context: int, body: bytes) -> PageRow:
    """The row of a page that was packed."""
    return PageRow(record.impression, context, record.closes_at, body)


async def open_context(server: Server, tenant: str, name: str, k: int, lists: Catalogue) -> Context:
    """A context that was not known before; Problem 422 when the tenant has too many, or the page is too large."""
    settings, digest = server.settings, digest_of(lists)
    _check_positions(settings.policy, k)
    terms = {
        **terms_by_settings(settings),
        "window_ms": server.window_ms,
        "k": k,
        "catalogue": digest.hex(),
    }
    await server.store.write(Group(catalogues=[CatalogueRow(digest, pack_catalogue(lists))]))
    row = await server.store.open_context(tenant, name, json.dumps(terms), settings.max_contexts)
    if row is None:
        detail = f"tenant {tenant} has {settings.max_contexts} contexts, as many as it may (max_contexts)"
        raise Problem(422, "Too many contexts", detail, "context")
    return await server.contexts.load(row)


# --- the answer, from the record of the page ---


_ALTERNATIVES = 3
"""So many of the items that could have stood at a place are named."""


def answer_of(record: PageRecord, token: str, leader: Sequence[str], call: RankCall) -> RankAnswer:
    """What the caller is told; ``leader`` is empty for production's page."""
    explored = [item for item in record.shown if item not in leader] if leader else []
    return RankAnswer(
        impression_id=identifiers.to_text(record.impression),
        token=token,
        ranking=list(record.shown),
        leader_version=record.knowledge,
        closes_at=moment(record.closes_at),
        mode=_mode(record.arm),
        safety=Safety(
            swaps=reversed_pairs(record.shown, leader), explored=explored[0] if explored else None, allowance_ok=True
        ),
        explanation=notes_of(record, leader) if call.explain else UNSET,
    )


def _mode(arm: int) -> Mode:
    if arm in (EXPLORE, HOLDOUT, REPEAT):
        return "live"
    return "shadow" if arm == SHADOW else "off"


def notes_of(record: PageRecord, leader: Sequence[str]) -> PageNotes:
    """What every position is doing there."""
    arm, chances = ARMS[record.arm], first_place_chances(record)
    if not leader:
        text = "production's ranking, as it is"
        notes = [
            PositionNote(position=at, item=item, role=text, first=float(at == 1))
            for at, item in enumerate(record.shown, 1)
        ]
        return PageNotes(text=text, arm=arm, positions=notes)
    text = (
        f"page {record.round} from version {record.knowledge}: the leader with {reversed_pairs(record.shown, leader)} "
        "pairs in the other order, by chance, to compare them fairly"
    )
    place_at = {position: place for place, position in enumerate(free_positions(record.k, record.pins))}
    notes = []
    for position, item in enumerate(record.shown):
        place = place_at.get(position)
        role = _PINNED if place is None else _role(record, leader, place)
        first = float(position == 0) if place is None else chances[place]
        notes.append(PositionNote(position=position + 1, item=item, role=role, first=first))
    return PageNotes(text=text, arm=arm, positions=notes)


_PINNED = "pinned: stands where production has it, compared with nothing"


def _role(record: PageRecord, leader: Sequence[str], place: int) -> str:
    rank = "of the leader" if record.row[place] in leader else "unranked"
    others = [other for other in range(len(record.row)) if other != place and _compared(record, place, other)]
    if not others:
        return f"{rank}, stands alone on this page"
    if record.law.drawn and record.law.weight[place] > 0:
        return f"{rank}, {_chances(record, place, others)}"
    names = ", ".join(record.row[other] for other in others)
    return f"{rank}, compared with {names}"


def _compared(record: PageRecord, place: int, other: int) -> bool:
    return record.law.start[place] == record.law.start[other]


def _chances(record: PageRecord, place: int, others: list[int]) -> str:
    """Of a page that was drawn: how likely its item was at this place given those above, and what else was."""
    weight = record.law.weight
    left = [other for other in others if other > place]
    total = weight[place] + sum(weight[other] for other in left)
    chances = sorted(((weight[other] / total, record.row[other]) for other in left), reverse=True)[:_ALTERNATIVES]
    instead = ", ".join(f"{item} {chance:.1%}" for chance, item in chances if chance >= 0.0005)
    return f"drawn with chance {weight[place] / total:.1%}" + (f"; instead {instead}" if instead else "")
