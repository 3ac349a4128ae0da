"""What the reading endpoints and the switches answer."""

from typing import Literal

from pydantic import Field

from saferank.service.wire.calls import Answer, Mode, Moment

Cause = Literal["opened", "page", "expired", "contradiction", "rollback", "reset"]
Arm = Literal["explore", "holdout", "off", "shadow", "repeat"]


class PairView(Answer):
    """Two items and what is known of their order."""

    better: str = Field(description="The item that leads, or of neighbours in the leader the upper one.")
    worse: str
    s: int = Field(description="Lead of the first.")
    n: int = Field(ge=0, description="Comparisons in which exactly one of the two was clicked.")
    decided: bool = Field(description="True when the first is certainly better.")


class ArmView(Answer):
    """Pages of one kind, counted when their windows closed."""

    pages: int = Field(ge=0)
    clicked_pages: int = Field(ge=0)
    clicks: int = Field(ge=0)


class ChallengerView(Answer):
    """The unranked item that contends for the last position."""

    item: str
    against: str
    s: int
    n: int
    index: float | None = None


class SwitchView(Answer):
    """A kill switch."""

    on: bool
    since: Moment | None = None
    why: str | None = None
    by_operator: bool = Field(
        default=False, description="True: turned for all tenants with an operator key, and ended only with one."
    )


class ContextSettingsView(Answer):
    """What a context has of its own; what is absent is as the service is set."""

    mode: Mode | None = None
    holdout_share: float | None = None
    guardrail_drop: float | None = None
    guardrail_error: float | None = None
    since: Moment | None = None
    why: str | None = None


class LeaderChange(Answer):
    """A version of the knowledge: the leader then, and what brought it about."""

    version: int
    leader: list[str]
    at: Moment
    cause: Cause
    impression_id: str | None = Field(default=None, description="The page whose clicks decided it, for the cause page.")
    evidence: list[PairView] = Field(default=[], description="Pairs that were certified.")
    lost: list[PairView] = Field(default=[], description="Pairs whose certificates ended or were dropped.")
    why: str | None = Field(default=None, description="The reason given, for a rollback or a reset.")


class ContextSummary(Answer):
    """A context in a list."""

    name: str
    k: int
    policy: str
    mode: Mode = Field(description="What it serves now: off when killed.")
    leader_version: int
    leader: list[str]
    moved: int = Field(ge=0, description="Places of the leader that differ from production's page.")
    pages: int = Field(ge=0, description="Pages whose windows have ended, of all arms.")
    served: ArmView = Field(description="Counted pages that the policy chose.")
    holdout: ArmView = Field(description="Pages of production's ranking, put there by a coin.")
    alarms: int = Field(ge=0, description="Contradictions between certificates so far.")
    killed: bool
    why: str | None = Field(default=None, description="The reason given for its switch.")
    last_change: Moment | None = None


class ContextView(Answer):
    """Everything about a context."""

    name: str
    k: int = Field(description="Places of the newest page.")
    sizes: list[int] = Field(description="All page sizes that were asked for; they share certificates.")
    policy: str
    rule: str
    certificate_days: float = Field(ge=0, description="Length of an epoch of certificates; 0: they never end.")
    window_seconds: float
    mode: Mode
    leader_version: int
    leader: list[str]
    base_ranking: list[str]
    candidates: list[str]
    pairs: list[PairView] = Field(description="Neighbours of the leader first, then other pairs with comparisons.")
    exploration: str = Field(default="", description="What the next page will try, in a sentence.")
    challenger: ChallengerView | None = None
    versions: list[LeaderChange] = Field(description="The latest leaders, newest first.")
    pages: int = Field(ge=0)
    open_pages: int = Field(ge=0)
    arms: dict[Arm, ArmView]
    killed: SwitchView
    killed_everywhere: SwitchView
    settings: ContextSettingsView = ContextSettingsView()
    alarms: dict[str, int]


class ContextList(Answer):
    """All contexts of a tenant."""

    contexts: list[ContextSummary]
    killed_everywhere: SwitchView


class LeaderAt(Answer):
    """The leader at a version or a moment."""

    context: str
    version: int
    leader: list[str]
    since: Moment
    until: Moment | None = None


class LeaderChanges(Answer):
    """All changes of a leader, oldest first."""

    context: str
    changes: list[LeaderChange]


class ImpressionView(Answer):
    """The full story of a page."""

    impression_id: str
    context: str
    arm: Arm
    counted: bool = Field(description="True when its clicks teach the learner.")
    state: Literal["open", "closed"]
    issued_at: Moment
    closes_at: Moment
    closed_at: Moment | None = None
    round: int
    policy: str
    rule: str
    leader_version: int
    leader: list[str]
    base_ranking: list[str]
    candidates: list[str]
    ranking: list[str] = Field(description="What was shown.")
    would_have_shown: list[str] | None = Field(default=None, description="In shadow mode: the learner's page.")
    hidden: list[str] = Field(default=[], description="Items compared without being shown.")
    groups: list[list[str]] = Field(default=[], description="Items compared with each other.")
    challenger: str | None = None
    coins: str = Field(default="", description="The random bytes of the page, in hexadecimal.")
    request_id: str | None = None
    clicks: list[str] = Field(default=[])
    explanation: str = Field(default="", description="The story in sentences.")
