"""Pages that a crash took from the log, or that were not written: their tokens bring them back with their clicks."""

from saferank.service.arms import EXPLORE
from saferank.service.context import Context, Opening
from saferank.service.core import Core
from saferank.service.pages import Facts, OpenPage, pack
from saferank.service.ranking import change_catalogue, open_context
from saferank.service.tokens import Claim
from saferank.store.events import Kind


def recreate(core: Core, claim: Claim, now: int) -> OpenPage:
    """The page of a token whose window is open but which nobody knows.

    It counts as issued now, and its clicks count unless its session has another counted page, or the context went back
    behind it. A context and items that were lost with it are made known first.
    """
    context = core.state.by_name.get((claim.tenant, claim.context)) or _lost_context(core, claim, now)
    core.close_due(context, now)
    counted = _counts(context, claim)
    if counted:
        _know_items(core, context, claim, now)
    counted = counted and context.contradiction is None
    core.counts["pages_recovered_total"] += 1
    event = core.write(Kind.PAGE, context.number, now, claim.impression, pack(_facts(context, claim, counted)))
    page = core.state.page(event)
    context.settle()
    return page


def _lost_context(core: Core, claim: Claim, now: int) -> Context:
    """The next rank call brings production's ranking; until then what was on the page stands for it."""
    opening = Opening(claim.n_shown, core.settings.policy, core.settings.rule, core.window_ms)
    lists = (list(claim.shown), list(claim.row[claim.n_shown :]))
    return open_context(core, claim.tenant, claim.context, opening, lists, now)


def _counts(context: Context, claim: Claim) -> bool:
    if claim.arm != EXPLORE or claim.n_shown != context.k or context.contradiction is not None:
        return False
    other = context.sessions.get(claim.session)
    return claim.issued_at > context.rolled_back_at and (other is None or not other.counted)


def _know_items(core: Core, context: Context, claim: Claim, now: int) -> None:
    unknown = [item for item in claim.row if item not in context.learner.index]
    if unknown:
        change_catalogue(core, context, (context.base, [*context.candidates, *unknown]), now)


def _facts(context: Context, claim: Claim, counted: bool) -> Facts:
    index = context.learner.index
    return Facts(
        arm=claim.arm,
        counted=counted,
        recovered=True,
        round=claim.round,
        leader_version=claim.leader_version,
        window_ms=claim.window_ms,
        exchanged=claim.exchanged if counted else 0,
        n_shown=claim.n_shown,
        numbers=tuple(index[item] for item in claim.row) if counted else (),
        group_ends=claim.group_ends if counted else (),
        challenger=claim.challenger if counted else None,
        session=claim.session,
        coins=claim.coins,
        request_id=None,
        names=() if counted else claim.shown,
    )
