"""What the service answers to its owners' questions: is it safe, is it better, was it worth it.

``GET /v1/effect`` and ``GET /v1/contexts/{context}/effect`` answer an ``EffectView``, ``GET /v1/overview`` an
``OverviewView``. Arms are compared on equal terms: the first page of a visitor in a context and window counts in its
arm, later ones in none.
"""

from typing import Literal

from pydantic import Field

from saferank.service.wire.calls import Answer, Mode, Moment
from saferank.service.wire.views import ArmView, LeaderChange, SwitchView


class IntervalView(Answer):
    """An estimate and the interval that covers the truth at all looks together but for the error."""

    estimate: float | None = Field(description="null while nothing can be said.")
    low: float
    high: float | None = Field(description="null: no upper end yet.")


class GuardrailView(Answer):
    """The guardrail and how far it is from stopping."""

    drop: float = Field(description="Relative loss that is not accepted: 0.03 is 3 % fewer clicks than the holdout.")
    error: float = Field(description="Probability over all time of a stop without such a loss.")
    log_evidence: float = Field(description="Logarithm of the evidence for a loss of more than drop.")
    needed: float = Field(description="It stops when log_evidence reaches this.")
    stopped: bool
    stopped_at: Moment | None = None


class EffectView(Answer):
    """Served pages beside the holdout; valid at every look."""

    served: ArmView = Field(description="Counted pages that the policy chose.")
    holdout: ArmView = Field(description="Counted pages of production's ranking, put there by a coin.")
    clicks: IntervalView | None = Field(default=None, description="Clicks a page, served minus holdout.")
    clicks_relative: IntervalView | None = Field(default=None, description="The same as a share of the holdout's.")
    clicked_pages: IntervalView | None = Field(
        default=None, description="Share of pages with a click, served minus holdout."
    )
    error: float = Field(description="Probability with which each interval may ever fail to cover the truth.")
    guardrail: GuardrailView | None = None
    why_not: str | None = Field(default=None, description="Why there is no comparison: without a holdout, say.")


class DayView(Answer):
    """Pages of one day that were compared: counted, and issued with a holdout share above 0."""

    day: str = Field(description="UTC, like 2026-03-01.")
    served: ArmView
    holdout: ArmView
    lift: float | None = Field(
        description="clicks_relative's estimate from all days until the end of this one; null while it has none."
    )


class MarkerView(Answer):
    """Something to be seen in a picture over time."""

    at: Moment
    kind: Literal["kill", "unkill", "rollback", "guardrail", "reset", "settings", "release", "alarm"]
    context: str | None = Field(default=None, description="null: everywhere.")
    text: str


class FunnelView(Answer):
    """How far contexts have come."""

    contexts: int
    with_evidence: int = Field(description="With at least one comparison.")
    changed_by_clicks: int = Field(description="With a leader that differs from production's by certificates.")
    stopped: int = Field(description="On production's ranking by a switch or by the guardrail.")
    undecided_for_long: int = Field(description="Will decide nothing within 90 days at this traffic.")


class FeedbackHealthView(Answer):
    """Whether clicks come back as they should."""

    closed_pages: int = Field(description="Pages whose window has ended, all arms.")
    clicked_pages: int = Field(description="Of those, pages with clicks.")
    accepted: int = Field(description="Reports of the tenant since the start of this process ...")
    duplicate: int
    late: int
    refused: dict[str, int] = Field(description="... and those refused, by reason.")


class ContextChangeView(Answer):
    """A change of a leader that clicks decided."""

    context: str
    change: LeaderChange


class AlarmView(Answer):
    """Something that should not happen."""

    at: Moment
    context: str | None
    kind: str
    detail: str


class OverviewView(Answer):
    """Everything at a glance, over all contexts of a tenant."""

    sentence: str = Field(description="The answer in one sentence.")
    now: Moment
    mode: Mode
    policy: str
    pages: int = Field(description="Closed pages of all arms.")
    served_share: float | None = Field(description="Share of closed pages that the policy chose; null without pages.")
    differing_share: float | None = Field(
        description="Of the policy's counted pages of the last 7 days, the share that differs from production's page."
    )
    effect: EffectView
    days: list[DayView] = Field(description="Oldest first.")
    markers: list[MarkerView] = Field(description="Oldest first.")
    funnel: FunnelView
    changes: list[ContextChangeView] = Field(description="The newest that clicks decided, newest first.")
    feedback: FeedbackHealthView
    alarms: list[AlarmView] = Field(description="Newest first.")
    killed_everywhere: SwitchView
