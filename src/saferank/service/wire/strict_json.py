"""JSON from strangers: what two readers could understand differently is refused.

A key that is written twice, NaN and Infinity, numbers beyond a float, deep nesting, text that is not UTF-8, halves of
surrogate pairs: each is refused with a sentence that says where.
"""

import json
from collections.abc import Iterable
from typing import Any

from saferank.service.wire.problems import Problem

DEEPEST = 20
_LONGEST_PATH = 300
TITLE = "Invalid JSON"


class _RefusedError(ValueError):
    """Why a text is refused."""


def loads(body: bytes) -> Any:
    """The value of a JSON text; Problem 400 for what is not strict JSON.

    >>> loads(b'{"k": 5}')
    {'k': 5}
    >>> loads(b'{"k": 5, "k": 6}')
    Traceback (most recent call last):
    saferank.service.wire.problems.Problem: Invalid JSON: key 'k' is there twice in an object
    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise Problem(400, TITLE, f"the body is not UTF-8 (byte {problem.start})") from problem
    except json.JSONDecodeError as problem:
        place = f"line {problem.lineno}, column {problem.colno}"
        raise Problem(400, TITLE, f"the body is not JSON: {problem.msg} at {place}") from problem
    except _RefusedError as problem:
        raise Problem(400, TITLE, str(problem)) from problem
    except RecursionError as problem:
        raise _too_deep() from problem
    if body.count(b"[") + body.count(b"{") > DEEPEST or b"\\u" in body:
        _check(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(f"key {twice[:100]!r} is there twice in an object")
    return made


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else _number(digits)  # Python refuses to convert thousands of digits


def _number(text: str) -> int | float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _RefusedError(f"the number {text[:30]} is out of range")
    return int(value) if value.is_integer() else value  # for JSON 5.0 is the same number as 5


def _constant(name: str) -> None:
    raise _RefusedError(f"found {name}, which is not JSON")


def _too_deep() -> Problem:
    return Problem(400, TITLE, f"the body is nested more than {DEEPEST} deep")


def _check(value: Any) -> None:
    """Depth and surrogates, without recursion. Where a problem is, is asked when there is one: paths may be long."""
    level, depth, whole = [value], 0, True
    while level:
        if depth >= DEEPEST and any(isinstance(part, dict | list) for part in level):
            raise _too_deep()
        inner: list[Any] = []
        for part in level:
            if isinstance(part, str):
                whole = whole and _is_whole(part)
            elif isinstance(part, dict):
                whole = whole and all(map(_is_whole, part))
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level, depth = inner, depth + 1
    if not whole:
        steps = "".join(_steps(value) or ()).removeprefix(".")
        path = steps[:_LONGEST_PATH].encode("ascii", "replace").decode()
        detail = f"{path or 'the body'} has half a surrogate pair, which is no character"
        raise Problem(400, TITLE, detail, path or None)


def _is_whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _steps(value: Any) -> list[str] | None:
    """The way to the first text with half a surrogate pair, or to its object if that is a key. None: there is none."""
    if isinstance(value, str):
        return None if _is_whole(value) else []
    entries: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        if not all(map(_is_whole, value)):
            return []
        entries = ((f".{key}", entry) for key, entry in value.items())
    elif isinstance(value, list):
        entries = ((f"[{place}]", entry) for place, entry in enumerate(value))
    for step, entry in entries:
        found = _steps(entry)
        if found is not None:
            return [step, *found]
    return None


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_number, parse_constant=_constant)
