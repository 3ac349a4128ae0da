"""What the reading endpoints and the switches answer."""

from typing import Annotated, Literal

from msgspec import Meta, field

from saferank.service.wire.calls import Answer, Mode, Moment, about

Cause = Literal["opened", "page", "expired", "contradiction", "rollback", "reset"]
Arm = Literal["explore", "holdout", "off", "shadow", "repeat"]


class PairView(Answer):
    """Two items and the evidence of their order."""

    better: Annotated[str, about("The item that leads, or of neighbours in the leader the upper one.")]
    worse: str
    s: Annotated[int, about("Lead of the first.")]
    n: Annotated[int, about("Comparisons in which exactly one of the two was clicked.", ge=0)]
    decided: Annotated[bool, about("True when the first is certainly better.")]


class ArmView(Answer):
    """Pages of one kind, counted when their windows closed."""

    pages: Annotated[int, Meta(ge=0)]
    clicked_pages: Annotated[int, Meta(ge=0)]
    clicks: Annotated[int, Meta(ge=0)]


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
    by_operator: Annotated[
        bool, about("True: turned for all tenants with an operator key, and ended only with one.")
    ] = False


class ContextSettingsView(Answer):
    """What a context has of its own; what is absent is as the service is set."""

    mode: Mode | None = None
    holdout_share: float | None = None
    guardrail_drop: float | None = None
    since: Moment | None = None
    why: str | None = None


class ForgetView(Answer):
    """A deletion that was asked for: pages in open windows go when these have ended."""

    done_by: Annotated[Moment, about("Nothing is left after this, if servers run until then.")]


class TrafficView(Answer):
    """The share of a tenant's visitors whose pages the policy may choose."""

    share: float
    since: Annotated[Moment | None, about("Absent: as the service is set.")] = None
    why: str | None = None


class LeaderChange(Answer):
    """A version of the knowledge: the leader then, and what brought it about."""

    version: int
    leader: list[str]
    at: Moment
    cause: Cause
    impression_id: Annotated[str | None, about("The page whose clicks decided it, for the cause page.")] = None
    evidence: Annotated[list[PairView], about("Pairs that were certified.")] = []
    lost: Annotated[list[PairView], about("Pairs whose certificates ended or were dropped.")] = []
    why: Annotated[str | None, about("The reason given, for a rollback or a reset.")] = None


class ContextSummary(Answer):
    """A context in a list."""

    name: str
    k: int
    policy: str
    mode: Annotated[Mode, about("What it serves now: off when killed.")]
    leader_version: int
    leader: list[str]
    moved: Annotated[int, about("Places of the leader that differ from production's page.", ge=0)]
    pages: Annotated[int, about("Pages whose windows have ended, of all arms.", ge=0)]
    served: Annotated[ArmView, about("Counted pages that the policy chose.")]
    holdout: Annotated[ArmView, about("Pages of production's ranking, put there by a coin.")]
    alarms: Annotated[int, about("Contradictions between certificates so far.", ge=0)]
    killed: bool
    waiting: Annotated[bool, about("True: production's ranking until there is traffic enough (least_traffic).")]
    why: Annotated[str | None, about("The reason given for its switch, or why it waits.")] = None
    last_change: Moment | None = None


class ContextView(Answer, kw_only=True):
    """Everything about a context."""

    name: str
    k: Annotated[int, about("Places of the newest page.")]
    policy: str
    rule: str
    certificate_days: Annotated[float, about("Length of an epoch of certificates; 0: they never end.", ge=0)]
    trust: Annotated[float, about("How sure the team was, before any click, of production's order.")]
    window_seconds: float
    mode: Mode
    waiting: Annotated[bool, about("True: production's ranking until there is traffic enough (least_traffic).")]
    leader_version: int
    leader: list[str]
    base_ranking: list[str]
    candidates: list[str]
    pairs: Annotated[list[PairView], about("Neighbours of the leader first, then other pairs with comparisons.")]
    exploration: Annotated[str, about("What the next page will try, in a sentence.")] = ""
    challenger: ChallengerView | None = None
    versions: Annotated[list[LeaderChange], about("The latest leaders, newest first.")]
    pages: Annotated[int, Meta(ge=0)]
    open_pages: Annotated[int, Meta(ge=0)]
    arms: dict[Arm, ArmView]
    killed: SwitchView
    killed_everywhere: SwitchView
    settings: ContextSettingsView = field(default_factory=ContextSettingsView)
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


class ImpressionView(Answer, kw_only=True):
    """The full story of a page."""

    impression_id: str
    context: str
    arm: Arm
    counted: Annotated[bool, about("True when its clicks teach the learner.")]
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
    ranking: Annotated[list[str], about("What was shown.")]
    would_have_shown: Annotated[list[str] | None, about("In shadow mode: the learner's page.")] = None
    hidden: Annotated[list[str], about("Items compared without being shown.")] = []
    groups: Annotated[list[list[str]], about("Items compared with each other.")] = []
    challenger: str | None = None
    coins: Annotated[str, about("The random bytes of the page, in hexadecimal.")] = ""
    request_id: str | None = None
    clicks: list[str] = []
    explanation: Annotated[str, about("The story in sentences.")] = ""


class IntervalView(Answer):
    """An estimate and the interval that covers the truth at all looks together but for the error."""

    estimate: Annotated[float | None, about("null while nothing can be said.")]
    low: float
    high: Annotated[float | None, about("null: no upper end yet.")]


class GuardrailView(Answer):
    """The guardrail and how far it is from stopping."""

    drop: Annotated[float, about("Relative loss that is not accepted: 0.03 is 3 % fewer clicks than the holdout.")]
    error: Annotated[float, about("Probability over all time of a stop without such a loss.")]
    log_evidence: Annotated[float, about("Logarithm of the evidence for a loss of more than drop.")]
    needed: Annotated[float, about("It stops when log_evidence reaches this.")]
    stopped: bool
    stopped_at: Moment | None = None


class EffectView(Answer, kw_only=True):
    """Served pages beside the holdout; valid at every look."""

    served: Annotated[ArmView, about("Counted pages that the policy chose.")]
    holdout: Annotated[ArmView, about("Counted pages of production's ranking, put there by a coin.")]
    clicks: Annotated[IntervalView | None, about("Clicks a page, served minus holdout.")] = None
    clicks_relative: Annotated[IntervalView | None, about("The same as a share of the holdout's.")] = None
    clicked_pages: Annotated[IntervalView | None, about("Share of pages with a click, served minus holdout.")] = None
    error: Annotated[float, about("Probability with which each interval may ever fail to cover the truth.")]
    guardrail: GuardrailView | None = None
    why_not: Annotated[str | None, about("Why there is no comparison: without a holdout, say.")] = None
    promised: Annotated[float, about("Pages of the holdout that the coins promised; far from them is an alarm.")] = 0.0


class BinView(Answer):
    """Pages of an hour or a UTC day that were compared: counted, and issued with a holdout share above 0."""

    begin: Moment
    served: ArmView
    holdout: ArmView
    lift: Annotated[
        float | None,
        about("clicks_relative's estimate from everything until the end of this one; null while it has none."),
    ]


class SafetyView(Answer):
    """The check of every page that the policy chose."""

    checked: Annotated[int, about("Pages of the policy that were shown or refused; closed ones.")]
    over_limit: Annotated[int, about("Refused: more wrong pairs than allowed. Production's page was shown.")]
    worst_page: Annotated[
        float | None,
        about("Wrong pairs beyond production's that a shown page may have had, at most, as a share of those allowed."),
    ]


class ExploringView(Answer):
    """What exploring costs: shares of the policy's counted pages of the last 7 days; null without any."""

    proven: Annotated[float | None, about("Not production's page, because certificates prove another one better.")]
    learning: Annotated[float | None, about("Neither production's nor the proven page: something was tried.")]


class ServerView(Answer):
    """A server that is alive."""

    name: str
    here: Annotated[bool, about("True for the one that answers.")]
    obeys: Annotated[bool, about("True when it has obeyed everything that operators have done.")]


class MarkerView(Answer, kw_only=True):
    """Something to be seen in a picture over time."""

    at: Moment
    kind: Literal["kill", "unkill", "rollback", "guardrail", "reset", "settings", "traffic", "release", "alarm"]
    context: Annotated[str | None, about("null: everywhere.")] = None
    text: str


class FunnelView(Answer):
    """How far contexts have come."""

    contexts: int
    with_evidence: Annotated[int, about("With at least one comparison.")]
    changed_by_clicks: Annotated[int, about("With a leader that differs from production's by certificates.")]
    stopped: Annotated[int, about("On production's ranking by a switch or by the guardrail.")]
    waiting: Annotated[int, about("On production's ranking until there is traffic enough (least_traffic).")]
    undecided_for_long: Annotated[int, about("Will decide nothing within 90 days at this traffic.")]
    first_decision_days: Annotated[
        float | None,
        about("Until some context decides its first pair, about, at this traffic; null: one has, or no telling yet."),
    ] = None


class FeedbackHealthView(Answer):
    """Whether clicks come back as they should."""

    closed_pages: Annotated[int, about("Pages whose window has ended, all arms.")]
    clicked_pages: Annotated[int, about("Of those, pages with clicks.")]
    accepted: Annotated[int, about("Reports of the tenant since the start of this process ...")]
    duplicate: int
    late: int
    refused: Annotated[dict[str, int], about("... and those refused, by reason.")]


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

    sentence: Annotated[str, about("The answer in one sentence.")]
    now: Moment
    mode: Mode
    policy: str
    traffic: TrafficView
    unknowable: Annotated[list[str], about("What cannot be known or prevented as the service is set.")]
    pages: Annotated[int, about("Closed pages of all arms.")]
    served_share: Annotated[float | None, about("Share of closed pages that the policy chose; null without pages.")]
    safety: SafetyView
    exploring: ExploringView
    effect: EffectView
    bins: Annotated[list[BinView], about("Oldest first: by the hour until there are two days, then by the day.")]
    markers: Annotated[list[MarkerView], about("Oldest first.")]
    funnel: FunnelView
    changes: Annotated[list[ContextChangeView], about("The newest that clicks decided, newest first.")]
    feedback: FeedbackHealthView
    alarms: Annotated[list[AlarmView], about("Newest first.")]
    servers: list[ServerView]
    killed_everywhere: SwitchView
    simulated: Annotated[str | None, about("Of a demo: what is simulated, in a sentence.")] = None


class ClickBoundsView(Answer):
    """Clicks a page that the policy's pages would have got, as far as they are known."""

    low: Annotated[float, about("What is known, a page.")]
    high: Annotated[float, about("The same and a click on every place of which nothing is known, a page.")]


class ShadowView(Answer):
    """Closed shadow pages: production's page was shown, the policy's was noted."""

    pages: Annotated[int, Meta(ge=0)]
    same: Annotated[int, about("Pages for which the policy chose production's page.", ge=0)]
    differing: Annotated[int, Meta(ge=0)]
    differing_share: Annotated[float | None, about("null without pages, like all that is a page.")]
    exchanged_pairs: Annotated[
        float | None,
        about("Pairs of items a page in the opposite order to production's, all pages; hidden items are last."),
    ]
    new_items: Annotated[float | None, about("Items a page that production's did not show, all pages.")]
    clicks: Annotated[float | None, about("Clicks a page on production's page, all pages.")]
    clicks_where_same: Annotated[float | None, about("Clicks a page where the policy chose production's page.")]
    clicks_where_differing: Annotated[float | None, about("Clicks a page, on production's page, where it did not.")]
    would_have_got: Annotated[
        ClickBoundsView | None, about("Clicks a page of the policy's pages, without a click model.")
    ] = None
    would_have_got_read_from_the_top: Annotated[
        ClickBoundsView | None,
        about("Model estimate: visitors read from the top, so a click does not depend on what is below it."),
    ] = None
    would_have_got_by_place: Annotated[
        ClickBoundsView | None, about("Model estimate: a click depends on the item and its place alone.")
    ] = None
