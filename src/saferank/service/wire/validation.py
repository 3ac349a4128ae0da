"""Pydantic's errors in sentences, and where in the request each belongs."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from saferank.service.wire.problems import Problem

_SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this call; leave it out",
    "string_pattern_mismatch": "must not contain control characters",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries, found {actual_length}",
    "too_long": "must have at most {max_length} entries",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "misuse": "{what}",
    "value_error": "{error}",
}


def where(error: ErrorDetails) -> str:
    """The name of the field that an error is about.

    >>> where({"loc": ("batch", 3, "clicks", 0), "type": "string_type", "msg": "", "input": None})
    'batch[3].clicks[0]'
    """
    return _joined([*error["loc"], *_own_place(error)])


def _own_place(error: ErrorDetails) -> Sequence[str]:
    place = (error.get("ctx") or {}).get("where", "")
    return [place] if place else []


def _joined(parts: Sequence[Any]) -> str:
    text = ""
    for part in parts:
        bracket = f"[{part}]" if isinstance(part, int) else part if str(part).startswith("[") else f".{part}"
        text += bracket
    return text.removeprefix(".")


def sentence(error: ErrorDetails) -> str:
    """What is wrong, in the form of the rest of a sentence that begins with the field."""
    pattern = _SENTENCES.get(error["type"])
    if pattern is None:
        return error["msg"][:1].lower() + error["msg"][1:]
    return pattern.format(**(error.get("ctx") or {}))


def problem_of(error: ValidationError) -> Problem:
    """The first error as a problem; how many others there are."""
    errors = error.errors(include_url=False, include_input=False)
    field, others = where(errors[0]), error.error_count() - 1
    more = f" ({others} more {'thing' if others == 1 else 'things'} to correct)" if others else ""
    subject = field[:300] or "the body"
    return Problem(422, "Invalid request", f"{subject} {sentence(errors[0])}{more}", field or None)
