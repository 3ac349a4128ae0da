"""The rank call: which page to show. For a context that is in memory nothing has to be waited for.

A page is one record from its beginning: production's first, then the one that was drawn.
"""

import functools
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from saferank.policies import policy_kind
from saferank.service import identifiers
from saferank.service.identifiers import Visitor, draws_of, traffic_draw, visitor
from saferank.service.json_logs import log
from saferank.service.knowledge.arms import ARMS, DAY_MS, EXPLORE, HOLDOUT, OFF, REPEAT, SHADOW
from saferank.service.knowledge.propensities import first_place_chances
from saferank.service.knowledge.view import Catalogue, IllegalPageError, digest_of, pack_catalogue
from saferank.service.protocol.contexts import Context, terms_by_settings
from saferank.service.protocol.switches import InForce
from saferank.service.wire.calls import Mode, PageNotes, PositionNote, RankAnswer, RankCall, Safety, moment
from saferank.service.wire.problems import Problem
from saferank.store.contract import CatalogueRow, Group, PageRow, StoreError, StoreUnavailableError
from saferank.store.page_record import COINS_SIZE, OVER, SERVER_SIZE, PageRecord, free_positions

if TYPE_CHECKING:
    from saferank.service.server import Server


async def rank(server: "Server", tenant: str, call: RankCall) -> RankAnswer:
    """The page to show."""
    lists = call.base_ranking, call.candidates
    context = server.contexts.loaded(tenant, call.context) or await _find(server, tenant, call, lists)
    digest, (now, is_fresh) = digest_of(lists), server.heartbeat.reading()
    who = visitor(server.session_key, tenant, call.session_id, call.request_id, call.source)
    logged = context is not None and not server.writer.overloaded
    fold = None if context is None else context.fold
    record = PageRecord(  # of production's page
        impression=server.ids.next(now),
        tenant=tenant,
        context=call.context,
        policy=server.settings.policy if fold is None else fold.terms.policy,
        arm=OFF,
        knowledge=0 if fold is None else fold.version,
        round=0,
        window_ms=server.window_ms if fold is None else fold.terms.window_ms,
        k=call.k,
        visitor=who.key,
        catalogue=digest,
        coins=bytes(COINS_SIZE),
        row=(),
        instead=tuple(call.base_ranking[: call.k]),
        request_id=call.request_id,
        server=server.run if logged else bytes(SERVER_SIZE),
        number=server.issued + 1 if logged else 0,
        source=who.source,
    )
    if context is None or not logged:  # its token brings it back if clicks come
        return answer_of(record, server.tokens.seal(record.impression, record.packed()), (), call)
    context.newest = (digest, lists, call.k)
    draws = draws_of(server.session_key, who, tenant, call.context, now // record.window_ms)
    rules = server.switches.in_force(server.settings, tenant, context.number, context.fold.operation)
    arm, share = _arm(server, context, call, rules, now, who) if is_fresh else OFF, 0.0
    if arm == EXPLORE:
        share = rules.holdout_share
        arm = HOLDOUT if draws.arm < share else EXPLORE
    if arm != OFF:  # in every arm: what is refused must not depend on it
        _check_positions(record.policy, call.k)
        record = record._replace(arm=arm, share=share)
    if arm in (EXPLORE, SHADOW):
        return _drawn(server, context, record, call, now, draws.coins)
    return _log(server, context, record, call)


# --- the page ---


def _drawn(
    server: "Server", context: Context, record: PageRecord, call: RankCall, now: int, coins: bytes
) -> RankAnswer:
    """The page of the policy, shown or (shadow) only noted. What refuses it leaves production's page its share."""
    lists, terms = (call.base_ranking, call.candidates), context.fold.terms
    if terms.lifetime_ms and terms.epoch_at(now - terms.window_ms) > context.fold.epoch:
        context.stand_in(now)
    pins = call.pins if call.pinned else 0
    view = server.views.view(context.number, context.known, record.catalogue, lists, call.k, pins)
    try:
        page = view.page(coins, record)
    except IllegalPageError as fault:
        server.alarm("illegal_page", context, str(fault))
        return _log(server, context, record._replace(arm=OFF, used=OVER), call)
    if not server.heartbeat.reading().is_fresh:  # the last step: somebody may have pulled a switch meanwhile
        return _log(server, context, record._replace(arm=OFF), call)
    if record.arm == SHADOW:
        return _log(server, context, page._replace(instead=page.base, base=()), call)
    return _log(server, context, page, call, view.leader)


def _arm(server: "Server", context: Context, call: RankCall, rules: InForce, now: int, who: Visitor) -> int:
    """OFF, SHADOW, or else EXPLORE: then the coin decides about the holdout."""
    mode, share = call.mode or rules.mode, rules.traffic_share
    if mode == "off" or rules.stopped or context.number in server.contexts.set_aside:
        return OFF
    if mode == "shadow":
        return SHADOW
    # a visitor who is in a share is in every larger one
    is_chosen = share >= 1.0 or traffic_draw(server.session_key, who, context.row.tenant) < share
    return EXPLORE if is_chosen and not _waits(server, context, now) else OFF


def _waits(server: "Server", context: Context, now: int) -> bool:
    if server.settings.least_traffic and context.waited[0] != now // DAY_MS:
        context.waited = now // DAY_MS, server.waits_for_traffic(context.fold.compared, context.terms)
    return context.waited[1]


def _log(
    server: "Server", context: Context, record: PageRecord, call: RankCall, leader: tuple[str, ...] = ()
) -> RankAnswer:
    body = record.packed()
    server.writer.add_catalogue(record.catalogue, (call.base_ranking, call.candidates))
    server.issued += 1
    server.writer.add_page(page_row(record, context.number, body))
    server.counts["pages_total"] += 1
    server.counts["pages_explored_total"] += record.arm == EXPLORE
    return answer_of(record, server.tokens.seal(record.impression, body), leader, call)


# --- contexts ---


async def _find(server: "Server", tenant: str, call: RankCall, lists: Catalogue) -> Context | None:
    """The context of a call, opened if it is new; None while the store does not answer."""
    try:
        context = await server.contexts.find(tenant, call.context)
        return context or await open_context(server, tenant, call.context, call.k, lists)
    except StoreUnavailableError:
        return None
    except StoreError as problem:  # damage: this context cannot be used, others can
        log(logging.ERROR, "a context cannot be read", tenant=tenant, context=call.context, detail=str(problem))
        return None


@functools.lru_cache(maxsize=256)  # of sizes that are refused nothing is kept
def _check_positions(policy: str, k: int) -> None:
    try:
        policy_kind(policy).check_positions(k)
    except ValueError as problem:
        raise Problem(422, "Too many positions", str(problem), "k") from problem


def page_row(record: PageRecord, context: int, body: bytes) -> PageRow:
    """The row of a page that was packed."""
    return PageRow(record.impression, context, record.closes_at, body)


async def open_context(server: "Server", tenant: str, name: str, k: int, lists: Catalogue) -> Context:
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
"""At most this number of the items that could have stood at a place are named."""


def answer_of(record: PageRecord, token: str, leader: Sequence[str], call: RankCall) -> RankAnswer:
    """What the caller is told; ``leader`` is empty for production's page."""
    shown, swaps, explored = record.shown, 0, None
    if leader and shown != leader:
        swaps, explored = reversed_pairs(shown, leader), next((item for item in shown if item not in leader), None)
    return RankAnswer(
        impression_id=identifiers.to_text(record.impression),
        token=token,
        ranking=list(shown),
        leader_version=record.knowledge,
        closes_at=moment(record.closes_at),
        mode=_MODES[record.arm],
        safety=Safety(swaps=swaps, explored=explored, allowance_ok=True),
        explanation=notes_of(record, leader) if call.explain else UNSET,
    )


_MODES: dict[int, Mode] = {EXPLORE: "live", HOLDOUT: "live", REPEAT: "live", SHADOW: "shadow", OFF: "off"}


def reversed_pairs(shown: Sequence[str], leader: Sequence[str]) -> int:
    """How many pairs of the leader are shown in the other order."""
    if tuple(shown) == tuple(leader):
        return 0
    place = dict(zip(leader, range(len(leader)), strict=True))
    above, found = 0, 0  # places of the items above, as bits
    for item in shown:
        if item in place:
            found += (above >> place[item]).bit_count()
            above |= 1 << place[item]
    return found


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
