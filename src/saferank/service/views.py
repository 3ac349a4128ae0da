"""What the reading endpoints and the switches answer."""

from typing import Literal

from pydantic import Field

from saferank.service.calls import Answer, Mode, Moment

Cause = Literal["opened", "page", "catalogue", "rollback"]
Arm = Literal["explore", "holdout", "off", "shadow", "frozen", "repeat"]


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


class LeaderChange(Answer):
    """A new leader and the evidence for it."""

    version: int
    leader: list[str]
    at: Moment
    cause: Cause
    impression_id: str | None = Field(default=None, description="The page whose clicks decided it, for the cause page.")
    evidence: list[PairView] = Field(default=[])
    why: str | None = Field(default=None, description="The reason given, for a rollback.")


class ContextSummary(Answer):
    """A context in a list."""

    name: str
    k: int
    policy: str
    mode: Mode = Field(description="What it serves now: off when killed or frozen.")
    leader_version: int
    leader: list[str]
    pages: int = Field(ge=0, description="Pages issued.")
    open_pages: int = Field(ge=0)
    killed: bool
    frozen: bool
    last_change: Moment | None = None


class ContextView(Answer):
    """Everything about a context."""

    name: str
    k: int
    policy: str
    rule: str
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
    frozen: str | None = Field(description="Why it is frozen on production's ranking, if it is.")
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
    recovered: bool = Field(default=False, description="True when it was re-created from its token after a crash.")
    clicks: list[str] = Field(default=[])
    explanation: str = Field(default="", description="The story in sentences.")
