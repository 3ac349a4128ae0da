"""How contexts stand at this moment, for the dashboard."""

import itertools
from typing import TYPE_CHECKING

import msgspec

from saferank.live.explanation import Explanation
from saferank.service.calls.audit import leader_change, versions_of
from saferank.service.calls.effect import arm_view
from saferank.service.knowledge.arms import ARMS, DAY_MS
from saferank.service.knowledge.knowledge import Knowledge
from saferank.service.knowledge.view import Catalogue, View
from saferank.service.protocol.all_contexts import ContextFigures
from saferank.service.protocol.contexts import Context, terms_of
from saferank.service.protocol.switches import switch_view
from saferank.service.wire.calls import Mode, moment
from saferank.service.wire.views import (
    ChallengerView,
    ContextList,
    ContextSummary,
    ContextView,
    PairView,
)
from saferank.store.contract import ContextRow

if TYPE_CHECKING:
    from saferank.service.server import Server

_LATEST_VERSIONS = 20
_MOST_PAIRS = 2000
_AT_ONCE = 200
"""Contexts of a list that are described before callers are let in."""


async def list_contexts(server: "Server", tenant: str) -> ContextList:
    """All contexts of a tenant, by name."""
    found = await server.all_contexts.of_tenant(tenant)
    summaries = []
    for place, (row, figures) in enumerate(sorted(found, key=lambda entry: entry[0].name)):
        if place % _AT_ONCE == _AT_ONCE - 1:
            await server.clock.sleep(0)  # rank calls go first
        summaries.append(_summary(server, row, figures))
    return ContextList(contexts=summaries, killed_everywhere=server.switches.everywhere(tenant))


def _summary(server: "Server", row: ContextRow, figures: ContextFigures) -> ContextSummary:
    switch = server.switches.switch(row.tenant, row.id)
    terms = figures.terms or terms_of(row)
    waiting = server.waits_for_traffic(figures.compared, terms)
    arms = dict(zip(ARMS, figures.tallies, strict=True))
    return ContextSummary(
        name=row.name,
        k=figures.k,
        policy=terms.policy,
        mode=_mode(server, row),
        leader_version=figures.version,
        leader=list(figures.leader),
        moved=figures.moved,
        pages=figures.pages,
        served=arm_view(arms["explore"]),
        holdout=arm_view(arms["holdout"]),
        alarms=sum(figures.alarms.values()),
        killed=switch is not None,
        waiting=waiting,
        why=switch.why if switch is not None else "waiting for traffic" if waiting else None,
        last_change=moment(figures.changed_at),
    )


def _mode(server: "Server", row: ContextRow) -> Mode:
    found = server.switches.in_force(server.settings, row.tenant, row.id)
    return "off" if found.stopped else found.mode


async def show_context(server: "Server", tenant: str, name: str) -> ContextView:
    """Everything about a context."""
    context = await server.known_context(tenant, name)
    await server.settle()
    return await _view(server, tenant, context)


async def _view(server: "Server", tenant: str, context: Context) -> ContextView:
    switches, row, fold, terms = server.switches, context.row, context.fold, context.terms
    lists, k = await _newest(server, context)
    knowledge = fold.knowledge
    leader, outlook = _outlook(knowledge, lists, k)
    versions = await versions_of(server, context, _LATEST_VERSIONS)
    open_pages = await server.store.count_pages(row.id, fold.through)
    return ContextView(
        name=row.name,
        k=k,
        policy=terms.policy,
        rule=terms.rule,
        certificate_days=terms.lifetime_ms / DAY_MS,
        trust=terms.trust,
        window_seconds=terms.window_ms / 1000,
        mode=_mode(server, row),
        waiting=server.waits_for_traffic(fold.compared, terms),
        leader_version=fold.version,
        leader=list(leader),
        base_ranking=lists[0],
        candidates=lists[1],
        pairs=pairs_of(knowledge, leader),
        exploration="" if outlook is None else outlook.exploration,
        challenger=_challenger(outlook),
        versions=[leader_change(version) for version in reversed(versions)],
        pages=fold.pages + open_pages,
        open_pages=open_pages,
        arms={arm: arm_view(tally) for arm, tally in zip(ARMS, fold.tallies, strict=True)},
        killed=switch_view(switches.switch(tenant, row.id)),
        killed_everywhere=switches.everywhere(tenant),
        settings=switches.settings(row.id),
        alarms=fold.alarms,
    )


async def _newest(server: "Server", context: Context) -> tuple[Catalogue, int]:
    """Production's newest ranking and page size: of the newest call here, or of the newest page that was closed."""
    if context.newest is not None:
        return context.newest[1], context.newest[2]
    fold = context.fold
    lists = await server.contexts.known_catalogue(fold.catalogue)
    look = fold.look
    return lists or (list(look.base), [item for item in look.items if item not in look.base]), fold.k


def _outlook(knowledge: Knowledge, lists: Catalogue, k: int) -> tuple[tuple[str, ...], Explanation | None]:
    """The leader of production's newest ranking, and what the next page would try."""
    if len(lists[0]) < k:
        return tuple(lists[0]), None
    view = View(knowledge, *lists, k)
    return view.leader, view.explain()


def _challenger(outlook: Explanation | None) -> ChallengerView | None:
    found = None if outlook is None else outlook.challenger
    return None if found is None else msgspec.convert(found, ChallengerView, from_attributes=True)


def pairs_of(knowledge: Knowledge, leader: tuple[str, ...]) -> list[PairView]:
    """Neighbours of the leader, then every other pair with comparisons."""
    known = knowledge.learner.index
    neighbours = [pair for pair in itertools.pairwise(leader) if pair[0] in known and pair[1] in known]
    pairs = [(upper, lower, *knowledge.learner.duel(upper, lower)) for upper, lower in neighbours]
    seen = {frozenset(pair) for pair in neighbours}
    pairs += [pair for pair in knowledge.compared(_MOST_PAIRS) if frozenset(pair[:2]) not in seen]
    surely = knowledge.certified.surely
    return [
        PairView(better=better, worse=worse, s=s, n=n, decided=surely(known[better], known[worse]))
        for better, worse, s, n in pairs
    ]
