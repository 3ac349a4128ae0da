"""From the bytes of a body to a call, or to a problem that names the field.

JSON comes from strangers: what two readers could understand differently is refused. msgspec refuses NaN, numbers beyond
a float, text that is not UTF-8 and halves of surrogate pairs. It does not see a key that is written twice, and for it
5.0 is no whole number. So a body that it refuses, or that may have a key twice, is read once more, slowly.
"""

import re
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from saferank.files import strict_json
from saferank.service.wire.calls import FeedbackBatch, FeedbackCall, MisuseError
from saferank.service.wire.problems import Problem

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
    """The call in a body; Problem 400 for what is not strict JSON, 422 with the name of a field that is wrong."""
    try:
        call: _Call = (_DECODERS.get(kind) or _decoder(kind)).decode(body)
        if body.count(b":") <= _keys(call):
            return call
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # it is said why below, in words
    return converted(values(body), kind)


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))


def _keys(call: Any) -> int:
    """How many keys the body of a call had at least."""
    if isinstance(call, FeedbackBatch):
        return 1 + sum(map(_keys, call.batch))
    required = 1 if isinstance(call, FeedbackCall) and not call.clicks else 0
    return required + sum(map(bool, msgspec.structs.astuple(call)))


def values(body: bytes) -> Any:
    """The value of a JSON text; Problem 400 for what is not strict JSON.

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
        if kind == "str":
            return "must not be empty" if bound == ">=" else f"must have at most {size} characters"
        return f"must have {_BOUNDS[bound]} {size} entries"
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
