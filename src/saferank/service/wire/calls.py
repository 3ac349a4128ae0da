"""What goes over the wire: the calls and answers of the two hot endpoints, and of the switches.

Calls are strict: no field that is not listed here, no text where a number is expected. What reading endpoints answer is
in ``views.py``.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from saferank.service.wire.problems import ProblemBody

LONGEST_ID = 256
MOST_POSITIONS = 100
MOST_ITEMS = 10_000
LARGEST_BATCH = 1000
LARGEST = 10**15 - 1  # whole numbers up to here mean the same in every language
ID_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+$"

Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern=ID_PATTERN)]
"""A name of an item, a context, a session or an event: 1 to 256 characters, no control characters."""
Token = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]
Why = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in UTC like 2026-03-01T12:00:00.000Z."""
Mode = Literal["live", "shadow", "off"]


def misuse(where: str, what: str) -> PydanticCustomError:
    """An error of a check of ours; ``where`` is added to the name of what is being checked."""
    return PydanticCustomError("misuse", "{what}", {"where": where, "what": what})


def _distinct(items: list[str]) -> list[str]:
    if len(set(items)) < len(items):
        seen: set[str] = set()
        for place, item in enumerate(items):
            if item in seen:
                raise misuse(f"[{place}]", f"{item!r} is in the list twice; keep one")
            seen.add(item)
    return items


DistinctIds = Annotated[list[Id], AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})]


class CallBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """The body of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RankCall(CallBody):
    """The question which page should be shown."""

    context: Id = Field(description="What the ranking is for: a query, a shelf, a segment. Contexts learn separately.")
    base_ranking: DistinctIds = Field(
        min_length=1, max_length=MOST_ITEMS, description="Production's ranking, best first, at least k items."
    )
    candidates: DistinctIds = Field(
        default=[], max_length=MOST_ITEMS, description="Items that may be tried besides; those ranked are ignored."
    )
    k: int = Field(ge=1, le=MOST_POSITIONS, description="How many items the page shows.")
    request_id: Id | None = Field(
        default=None,
        description="Without a session: the same request_id gets the same ranking until something is learnt or the "
        "window ends, each time under a new impression_id; the first page of a window counts.",
    )
    session_id: Id | None = Field(
        default=None,
        description="Whoever looks at the page: sees the same ranking until something is learnt or the window ends, "
        "each time under a new impression_id; the first page of a window counts.",
    )
    source: Id | None = Field(
        default=None, description="Account or address behind the session, best hashed: it votes once on a pair."
    )
    mode: Mode | None = Field(
        default=None, description="shadow and off show production's ranking; the service's own mode if absent."
    )
    explain: bool = Field(default=False, description="Say what every position is doing there.")

    @model_validator(mode="after")
    def _enough_items(self) -> "RankCall":
        if self.k > len(self.base_ranking):
            raise misuse("k", f"{self.k} is more than the {len(self.base_ranking)} items of base_ranking")
        return self


class Safety(Answer):
    """What distinguishes the page from the leader."""

    swaps: int = Field(ge=0, description="Neighbours shown in the other order.")
    explored: str | None = Field(
        description="The first item on the page that the leader does not have, if there is one; with safe-draw it may "
        "be in any place."
    )
    allowance_ok: bool = Field(description="True when the page was checked against the safety allowance and is in it.")


class PositionNote(Answer):
    """What one position of a page is doing there."""

    position: int
    item: str
    role: str
    first: float = Field(ge=0, le=1, description="Chance of the item to be first (docs/engineers/service.md).")


class PageNotes(Answer):
    """A page, explained."""

    text: str = Field(description="Leader, undecided neighbours and challenger, as text.")
    arm: str = Field(description="Why it is this page: explore, holdout, off or shadow.")
    positions: list[PositionNote]


class RankAnswer(Answer):
    """The page to show, and the token that its clicks are reported with."""

    impression_id: str = Field(description="The name of the page, in the store after about half a second.")
    token: str = Field(description="Proof of what was shown; goes back with the clicks.")
    ranking: list[str] = Field(description="The k items to show, best first.")
    leader_version: int
    closes_at: Moment = Field(description="Clicks count until then.")
    mode: Mode
    safety: Safety
    explanation: PageNotes | None = None


class FeedbackCall(CallBody):
    """What was clicked on a page; what is reported later is added to it."""

    token: Token | None = Field(default=None, description="The token of the page; or its impression_id.")
    impression_id: Id | None = Field(
        default=None,
        description="Instead of the token, with a rank key only. Other servers than the one that issued the page may "
        "not know it for about half a second (404); a token is known to all of them at once.",
    )
    clicks: DistinctIds = Field(max_length=MOST_POSITIONS, description="Items of the page that were clicked.")
    event_id: Id | None = Field(default=None, description="The same event_id with other clicks on the page: 409.")
    shown: DistinctIds | None = Field(
        default=None,
        max_length=MOST_POSITIONS,
        description="The items as they were shown; refused (422) when that is not the page.",
    )

    @model_validator(mode="after")
    def _one_name(self) -> "FeedbackCall":
        if (self.token is None) == (self.impression_id is None):
            given = "neither is" if self.token is None else "both are"
            raise misuse("token", f"give either token or impression_id; {given} given")
        return self


class FeedbackBatch(CallBody):
    """Many reports at once; each is answered for itself."""

    batch: list[FeedbackCall] = Field(min_length=1, max_length=LARGEST_BATCH)


class FeedbackAnswer(Answer):
    """What became of a report."""

    accepted: bool = Field(description="The clicks are on disk and will count (again true for a repetition).")
    duplicate: bool = Field(description="Nothing new was in it.")
    late: bool = Field(description="The page was closed; the clicks do not count.")
    state: Literal["open", "closed"]
    closes_at: Moment


class FeedbackResults(Answer):
    """Answers to a batch, in its order."""

    results: list[FeedbackAnswer | ProblemBody]


class KillCall(CallBody):
    """Switch to production's own ranking, or back."""

    on: bool = Field(description="True: production's ranking is served from now on.")
    why: Why = Field(description="For the log.")


class RollbackCall(CallBody):
    """Make an earlier leader the leader again and forget what was learnt after it."""

    version: int = Field(ge=0, le=LARGEST)
    why: Why = Field(description="For the log.")


class ResetCall(CallBody):
    """Forget everything that was learnt in a context, and take the present policy and rule of the service."""

    certificate_days: float | None = Field(
        default=None,
        ge=0,
        le=3650,
        description="Length of an epoch of certificates of the context from now on; 0: without end. As the service is "
        "set if absent.",
    )
    why: Why = Field(description="For the log.")


class SettingsCall(CallBody):
    """What a context has of its own; what is absent is as the service is set."""

    mode: Mode | None = Field(default=None, description="What calls get that name no mode.")
    holdout_share: float | None = Field(
        default=None, ge=0, le=0.5, description="Share of pages that are production's, to compare with."
    )
    guardrail_drop: float | None = Field(
        default=None, ge=0, lt=1, description="Relative loss of clicks at which the context is stopped; 0: never."
    )
    guardrail_error: float | None = Field(
        default=None, gt=0, lt=1, description="Error of the guardrails, of which the context has its part."
    )
    why: Why = Field(description="For the log.")
