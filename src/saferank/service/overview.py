"""How contexts stand at this moment, for the dashboard."""

import itertools

from saferank.learner import Learner
from saferank.service.arms import ARMS
from saferank.service.calls import Mode
from saferank.service.clock import moment
from saferank.service.context import Context, why_frozen
from saferank.service.core import Core
from saferank.service.leaders import leader_change
from saferank.service.learning import compared
from saferank.service.switches import known_context, switch_view
from saferank.service.views import (
    ArmView,
    ChallengerView,
    ContextList,
    ContextSummary,
    ContextView,
    LeaderChange,
    PairView,
)
from saferank.store.events import LeaderRow

_LATEST_VERSIONS = 20
_MOST_PAIRS = 2000


class Overview:
    """Reads the state in memory."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def contexts(self, tenant: str) -> ContextList:
        """All contexts of a tenant, by name."""
        known = sorted((name, context) for (owner, name), context in self._named() if owner == tenant)
        return ContextList(
            contexts=[self._summary(context) for _, context in known],
            killed_everywhere=switch_view(self._core.state.killed.get(tenant)),
        )

    def _named(self) -> list[tuple[tuple[str, str], Context]]:
        return list(self._core.state.by_name.items())

    def _summary(self, context: Context) -> ContextSummary:
        return ContextSummary(
            name=context.name,
            k=context.k,
            policy=context.opening.policy,
            mode=self._mode(context),
            leader_version=context.version,
            leader=list(context.leader),
            pages=context.pages,
            open_pages=len(context.queue),
            killed=context.killed is not None,
            frozen=context.contradiction is not None,
            last_change=moment(context.changed_at),
        )

    def _mode(self, context: Context) -> Mode:
        off = context.killed is not None or context.tenant in self._core.state.killed
        return "off" if off or context.contradiction is not None else self._core.settings.mode

    def context(self, tenant: str, name: str) -> ContextView:
        """Everything about a context."""
        context = known_context(self._core, tenant, name)
        outlook = context.learner.explain()
        challenger = outlook.challenger
        return ContextView(
            name=context.name,
            k=context.k,
            policy=context.opening.policy,
            rule=context.opening.rule,
            window_seconds=context.window_ms / 1000,
            mode=self._mode(context),
            leader_version=context.version,
            leader=list(context.leader),
            base_ranking=context.base,
            candidates=context.candidates,
            pairs=pairs_of(context),
            exploration=outlook.exploration,
            challenger=None
            if challenger is None
            else ChallengerView(
                item=str(challenger.item),
                against=str(challenger.against),
                s=challenger.s,
                n=challenger.n,
                index=challenger.index,
            ),
            versions=self._versions(context),
            pages=context.pages,
            open_pages=len(context.queue),
            arms={arm: _arm(tally) for arm, tally in zip(ARMS, context.tallies, strict=True)},
            killed=switch_view(context.killed),
            killed_everywhere=switch_view(self._core.state.killed.get(tenant)),
            frozen=None if context.contradiction is None else why_frozen(context.contradiction),
            alarms=context.alarms,
        )

    def _versions(self, context: Context) -> list[LeaderChange]:
        """The newest first: those that are not on disk yet, then those that are."""
        waiting = self._core.journal.waiting_leaders(context.number)
        rows = self._core.reader.rows("latest_leaders", context.number, _LATEST_VERSIONS)
        known = {row.version: row for row in [*(LeaderRow(*row) for row in rows), *waiting]}
        return [leader_change(known[version]) for version in sorted(known, reverse=True)[:_LATEST_VERSIONS]]


def pairs_of(context: Context) -> list[PairView]:
    """Neighbours of the leader, then every other pair with comparisons."""
    learner = context.learner
    neighbours = list(itertools.pairwise(context.leader))
    pairs = [(upper, lower, *learner.duel(upper, lower)) for upper, lower in neighbours]
    seen = {frozenset(pair) for pair in neighbours}
    pairs += [pair for pair in compared(learner, _MOST_PAIRS) if frozenset(pair[:2]) not in seen]
    return [_pair(learner, *pair) for pair in pairs]


def _pair(learner: Learner, better: str, worse: str, s: int, n: int) -> PairView:
    rule = learner.kind.rule
    decided = rule is not None and n > 0 and rule(learner.setup).decides(s, n)
    return PairView(better=better, worse=worse, s=s, n=n, decided=decided)


def _arm(tally: list[int]) -> ArmView:
    return ArmView(pages=tally[0], clicked_pages=tally[1], clicks=tally[2])
