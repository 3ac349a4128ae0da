"""What goes over the wire: the calls and answers of the two hot endpoints, and of the switches, and how they are read.

Calls are strict: no field that is not listed here, no text where a number is expected. What reading endpoints answer is
in ``views.py``.
"""

import functools
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from saferank.files import strict_json
from saferank.service.wire.problems import Problem


def about(meaning: str, **bounds: Any) -> Meta:
    """What a field means, for people and for the OpenAPI document, and what it may be."""
    return Meta(description=meaning, **bounds)


LONGEST_ID = 256
MOST_POSITIONS = 100
MOST_ITEMS = 10_000
LARGEST_BATCH = 1000
LARGEST = 10**15 - 1  # whole numbers up to here mean the same in every language
ID_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+$(?!\n)"  # for Python $ is also before a line feed at the end

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=ID_PATTERN)]
"""A name of an item, a context, a session or an event: 1 to 256 characters, no control characters."""
Token = Annotated[str, Meta(min_length=1, max_length=200_000)]
Why = Annotated[str, Meta(min_length=1, max_length=1000)]
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A time in UTC like 2026-03-01T12:00:00.000Z."""
Days = Annotated[float, Meta(ge=0, le=3650)]
Trust = Annotated[float, Meta(ge=0.5, le=0.99)]
HoldoutShare = Annotated[float, Meta(ge=0, le=0.5)]
GuardrailDrop = Annotated[float, Meta(ge=0, lt=1)]
Mode = Literal["live", "shadow", "off"]


class MisuseError(ValueError):
    """What a check of ours finds wrong; ``where`` is added to the name of what is being checked."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(what)
        self.where = where


def check_distinct(name: str, items: Sequence[str]) -> None:
    """MisuseError for a list with an entry that is there twice."""
    if len(set(items)) < len(items):
        seen: set[str] = set()
        for place, item in enumerate(items):
            if item in seen:
                raise MisuseError(f"{name}[{place}]", f"{item!r} is in the list twice; keep one")
            seen.add(item)


_DISTINCT = {"uniqueItems": True}
Items = Annotated[list[Id], Meta(max_length=MOST_ITEMS, extra_json_schema=_DISTINCT)]
PageItems = Annotated[list[Id], Meta(max_length=MOST_POSITIONS, extra_json_schema=_DISTINCT)]
"""Names that differ; ``check_distinct`` looks."""


class CallBody(Struct, forbid_unknown_fields=True):
    """The body of a request."""


class Answer(Struct, forbid_unknown_fields=True):
    """The body of an answer."""


class RankCall(CallBody, kw_only=True):
    """The question which page should be shown."""

    context: Annotated[Id, about("What the ranking is for: a query, a shelf, a segment. Contexts learn separately.")]
    base_ranking: Annotated[Items, about("Production's ranking, best first, at least k items.", min_length=1)]
    candidates: Annotated[Items, about("Items that may be tried besides; those ranked are ignored.")] = []
    k: Annotated[int, about("How many items the page shows.", ge=1, le=MOST_POSITIONS)]
    pinned: Annotated[
        PageItems,
        about(
            "Items among the first k of base_ranking that keep their places; they are compared with nothing. "
            "Fewer than k."
        ),
    ] = []
    request_id: Annotated[
        Id | None,
        about(
            "Without a session: the same request_id gets the same ranking until something is learnt or the "
            "window ends, each time under a new impression_id; the first page of a window counts."
        ),
    ] = None
    session_id: Annotated[
        Id | None,
        about(
            "The visitor who looks at the page: sees the same ranking until something is learnt or the window "
            "ends, each time under a new impression_id; the first page of a window counts."
        ),
    ] = None
    source: Annotated[
        Id | None, about("Account or address behind the session, best hashed: it votes once on a pair.")
    ] = None
    mode: Annotated[
        Mode | None, about("shadow and off show production's ranking; the service's own mode if absent.")
    ] = None
    explain: Annotated[bool, about("Say what every position is doing there.")] = False

    def __post_init__(self) -> None:
        """What the types cannot say."""
        check_distinct("base_ranking", self.base_ranking)
        check_distinct("candidates", self.candidates)
        if self.k > len(self.base_ranking):
            raise MisuseError("k", f"{self.k} is more than the {len(self.base_ranking)} items of base_ranking")
        if self.pinned:
            self._check_pinned()

    def _check_pinned(self) -> None:
        check_distinct("pinned", self.pinned)
        page = set(self.base_ranking[: self.k])
        for place, item in enumerate(self.pinned):
            if item not in page:
                what = f"{item!r} is not among the first {self.k} items of base_ranking and has no place to keep"
                raise MisuseError(f"pinned[{place}]", what)
        if len(self.pinned) >= self.k:
            raise MisuseError("pinned", f"leaves nothing to rank: all {self.k} positions are pinned; leave one free")

    @property
    def pins(self) -> int:
        """The positions of pinned items, as bits."""
        held = set(self.pinned)
        return sum([1 << at for at, item in enumerate(self.base_ranking[: self.k]) if item in held]) if held else 0


class Safety(Answer):
    """What distinguishes the page from the leader."""

    swaps: Annotated[int, about("Neighbours shown in the other order.", ge=0)]
    explored: Annotated[
        str | None,
        about(
            "The first item on the page that the leader does not have, if there is one; with safe-draw it "
            "may be in any place."
        ),
    ]
    allowance_ok: Annotated[bool, about("True when the page was checked against the safety allowance and is in it.")]


class PositionNote(Answer):
    """What one position of a page is doing there."""

    position: int
    item: str
    role: str
    first: Annotated[float, about("Chance of the item to be first (docs/engineers/service.md).", ge=0, le=1)]


class PageNotes(Answer):
    """A page, explained."""

    text: Annotated[str, about("Leader, undecided neighbours and challenger, as text.")]
    arm: Annotated[str, about("Why it is this page: explore, holdout, off or shadow.")]
    positions: list[PositionNote]


class RankAnswer(Answer):
    """The page to show, and the token that its clicks are reported with."""

    impression_id: Annotated[str, about("The name of the page, in the store after about half a second.")]
    token: Annotated[str, about("Proof of what was shown; goes back with the clicks.")]
    ranking: Annotated[list[str], about("The k items to show, best first.")]
    leader_version: int
    closes_at: Annotated[Moment, about("Clicks count until then.")]
    mode: Mode
    safety: Safety
    explanation: PageNotes | UnsetType = UNSET


class FeedbackCall(CallBody, kw_only=True):
    """What was clicked on a page; what is reported later is added to it."""

    token: Annotated[Token | None, about("The token of the page; or its impression_id.")] = None
    impression_id: Annotated[
        Id | None,
        about(
            "Instead of the token, with a rank key only. Other servers than the one that issued the page "
            "may not know it for about half a second (404); a token is known to all of them at once."
        ),
    ] = None
    clicks: Annotated[PageItems, about("Items of the page that were clicked.")]
    event_id: Annotated[Id | None, about("The same event_id with other clicks on the page: 409.")] = None
    shown: Annotated[
        PageItems | None, about("The items as they were shown; refused (422) when that is not the page.")
    ] = None

    def __post_init__(self) -> None:
        """What the types cannot say."""
        check_distinct("clicks", self.clicks)
        check_distinct("shown", self.shown or ())
        if (self.token is None) == (self.impression_id is None):
            given = "neither is" if self.token is None else "both are"
            raise MisuseError("token", f"or impression_id must be given, and only one of them; {given}")


class FeedbackBatch(CallBody):
    """Many reports at once; each is answered for itself."""

    batch: Annotated[list[FeedbackCall], Meta(min_length=1, max_length=LARGEST_BATCH)]


class FeedbackAnswer(Answer):
    """What became of a report."""

    accepted: Annotated[bool, about("The clicks are on disk and will count (again true for a repetition).")]
    duplicate: Annotated[bool, about("Nothing new was in it.")]
    late: Annotated[bool, about("The page was closed; the clicks do not count.")]
    state: Literal["open", "closed"]
    closes_at: Moment


_ENTRIES = [{"$ref": f"#/components/schemas/{name}"} for name in ("FeedbackAnswer", "ProblemBody")]


class FeedbackResults(Answer):
    """Answers to a batch, in its order."""

    results: Annotated[list[Any], Meta(extra_json_schema={"items": {"anyOf": _ENTRIES}})]


class KillCall(CallBody):
    """Switch to production's own ranking, or back."""

    on: Annotated[bool, about("True: production's ranking is served from now on.")]
    why: Annotated[Why, about("For the log.")]


class RollbackCall(CallBody):
    """Make an earlier leader the leader again and forget what was learnt after it."""

    version: Annotated[int, Meta(ge=0, le=LARGEST)]
    why: Annotated[Why, about("For the log.")]


class ResetCall(CallBody, kw_only=True):
    """Forget everything that was learnt in a context, and take the present policy and rule of the service."""

    certificate_days: Annotated[
        Days | None,
        about(
            "Length of an epoch of certificates of the context from now on; 0: without end. As the service "
            "is set if absent."
        ),
    ] = None
    trust: Annotated[
        Trust | None,
        about("How sure you are of production's order in this context; as the service is set if absent."),
    ] = None
    why: Annotated[Why, about("For the log.")]


class SettingsCall(CallBody, kw_only=True):
    """A context's own settings; those that are absent are as the service is set."""

    mode: Annotated[Mode | None, about("What calls get that name no mode.")] = None
    holdout_share: Annotated[HoldoutShare | None, about("Share of pages that are production's, to compare with.")] = (
        None
    )
    guardrail_drop: Annotated[
        GuardrailDrop | None, about("Relative loss of clicks at which the context is stopped; 0: never.")
    ] = None
    why: Annotated[Why, about("For the log.")]


class ForgetCall(CallBody):
    """Whose pages are deleted."""

    why: Annotated[Why, about("For the log.")]
    session_id: Annotated[Id | None, about("As rank calls named it.")] = None
    source: Annotated[Id | None, about("As rank calls named it; its pages and those of the session go.")] = None

    def __post_init__(self) -> None:
        """What the types cannot say."""
        if self.session_id is None and self.source is None:
            raise MisuseError("session_id", "or source must be given")


class TrafficCall(CallBody):
    """How many visitors the policy may choose pages for."""

    share: Annotated[float, about("Share of the tenant's visitors; the others get production's pages.", ge=0, le=1)]
    why: Annotated[Why, about("For the log.")]


# --- from the bytes of a body to a call, or to a problem that names the field ---
# JSON comes from strangers: what two readers could understand differently is refused. msgspec refuses NaN, numbers
# beyond a float, text that is not UTF-8 and halves of surrogate pairs. It does not see a key that is written twice, and
# for it 5.0 is no whole number. So a body that it refuses, or that may have a key twice, is read once more, slowly.


_Call = TypeVar("_Call")
TITLE, INVALID = "Invalid JSON", "Invalid request"
_LONGEST_FIELD = 300
_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object",
}  # fmt: skip
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_LENGTH = re.compile(r"Expected `([a-z]+)[^`]*` of length (>=|<=) (\d+)")
_BOUND = re.compile(r"Expected `[^`]+` (>=|<=|>|<) (\S+)")
_KIND = re.compile(r"Expected `([^`]+)`, got ")


def decoded(body: bytes, kind: type[_Call]) -> _Call:
    """The call in a body; Problem 400 unless it is strict JSON, 422 with the name of a field that is wrong."""
    try:
        call: _Call = (_DECODERS.get(kind) or _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))).decode(body)
        if body.count(b":") <= _keys(call):
            return call
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # it is said why below, in words
    return converted(values(body), kind)


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def _keys(call: Any) -> int:
    """How many keys the body of a call had at least."""
    if isinstance(call, FeedbackBatch):
        return 1 + sum(map(_keys, call.batch))
    required = 1 if isinstance(call, FeedbackCall) and not call.clicks else 0
    return required + sum(map(bool, msgspec.structs.astuple(call)))


def values(body: bytes) -> Any:
    """The value of a JSON text; Problem 400 unless it is strict JSON.

    >>> values(b'{"k": 5.0}')
    {'k': 5}
    >>> values(b'{"k": 5, "k": 6}')
    Traceback (most recent call last):
    saferank.service.wire.problems.Problem: Invalid JSON: key 'k' is there twice in an object
    """
    try:
        value = strict_json(body.decode("utf-8"), _object, _number)
        msgspec.json.decode(body)
    except UnicodeDecodeError as problem:
        raise Problem(400, TITLE, f"the body is not UTF-8 (byte {problem.start})") from problem
    except RecursionError as problem:
        raise Problem(400, TITLE, "the body is nested too deep") from problem
    except (ValueError, msgspec.MsgspecError) as problem:
        raise Problem(400, TITLE, str(problem)) from problem
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice[:100]!r} is there twice in an object")
    return made


def _number(text: str) -> int | float:
    if text.removeprefix("-").isdigit() and len(text) < 400:  # Python refuses to convert thousands of digits
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() else value  # for JSON 5.0 is the same number as 5


def converted(value: Any, kind: type[_Call], strict: bool = True) -> _Call:
    """A call from plain values; Problem 422 that names the field otherwise. Not strict: numbers may be texts."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        field, sentence = explained(error, kind)
        detail = f"{field[:_LONGEST_FIELD] or 'the body'} {sentence}"
        raise Problem(422, INVALID, detail, field[:_LONGEST_FIELD] or None) from error


def explained(error: msgspec.ValidationError, kind: Any) -> tuple[str, str]:
    """The field that an error is about, and what is wrong with it: the rest of a sentence that begins with the field.

    >>> try:
    ...     msgspec.convert({"batch": [{"clicks": [3]}]}, FeedbackBatch)
    ... except msgspec.ValidationError as error:
    ...     print(explained(error, FeedbackBatch))
    ('batch[0].clicks[0]', 'must be a text')
    """
    text = str(error)
    message, _, path = text.rpartition(" - at `$") if text.endswith("`") and " - at `$" in text else (text, "", "")
    steps = [path.removesuffix("`")]
    if isinstance(error.__cause__, MisuseError):
        return _joined(*steps, error.__cause__.where), str(error.__cause__)
    named = _FIELD.match(message)
    if named:
        missing = named[1].startswith("missing")
        return _joined(*steps, named[2]), "is missing" if missing else "is not a field of this call; leave it out"
    if message.startswith("Invalid enum value"):
        return _joined(*steps), f"must be {_choices(kind, _joined(*steps))}"
    return _joined(*steps), _sentence(message)


def _joined(*steps: str) -> str:
    return ".".join(step for step in steps if step).removeprefix(".")


def _sentence(message: str) -> str:
    if found := _LENGTH.match(message):
        kind, bound, size = found.groups()
        if bound == ">=":
            return "must not be empty"
        return f"must have at most {size} {'characters' if kind == 'str' else 'entries'}"
    if found := _BOUND.match(message):
        return f"must be {_BOUNDS[found[1]]} {float(found[2]):g}"
    if found := _KIND.match(message):
        kinds = [_KINDS[kind] for kind in found[1].split(" | ") if kind in _KINDS]
        return "must be " + " or ".join(kinds or [found[1]])
    if "matching regex" in message:
        return "must not contain control characters"
    return message[:1].lower() + message[1:]


def _choices(kind: Any, field: str) -> str:
    hint = get_type_hints(kind)[field]
    names = next(get_args(each) for each in (hint, *get_args(hint)) if get_origin(each) is Literal)
    return f"{', '.join(map(repr, names[:-1]))} or {names[-1]!r}"


# --- times: milliseconds of the store's clock, in the texts of callers ---


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def moment(milliseconds: int) -> str:
    """A time for people and programs (RFC 3339, UTC).

    >>> moment(1_772_366_400_007)
    '2026-03-01T12:00:00.007Z'
    """
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@functools.lru_cache(maxsize=256)  # thousands of answers in a second name the same few
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def milliseconds(text: str) -> int:
    """The time that an RFC 3339 text names; ValueError for any other text.

    >>> milliseconds("2026-03-01T13:00:00.007+01:00")
    1772366400007
    """
    if not _MOMENT.fullmatch(text):
        raise ValueError(f"{text!r} is not a moment like 2026-03-01T12:00:00Z")
    since = datetime.fromisoformat(text.upper()) - datetime(1970, 1, 1, tzinfo=UTC)
    return round(since.total_seconds() * 1000)
