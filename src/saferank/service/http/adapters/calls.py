"""The two calls of the engine, as adapters make them: the one place to change when the engine changes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from saferank.service.http.hub import Hub
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.wire.problems import Problem
from saferank.service.wire.validation import problem_of

_Made = TypeVar("_Made", bound=BaseModel)
Names = Mapping[str, str]
"""By field of a call: what the caller calls it, as a path of the body."""


async def rank(hub: Hub, tenant: str, call: RankCall) -> RankAnswer:
    """The page to show."""
    return await hub.engine.rank(tenant, call)


async def feedback(hub: Hub, tenant: str, calls: Sequence[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
    """What became of each report; returns once the clicks are on disk."""
    return await hub.engine.feedback(tenant, list(calls))


def made(kind: type[_Made], names: Names, **parts: Any) -> _Made:
    """A call of the engine from checked parts; Problem 422 with the caller's name of the field if it cannot be one."""
    try:
        return kind(**parts)
    except ValidationError as problem:
        raise renamed(problem_of(problem), names) from problem


def renamed(problem: Problem, names: Names) -> Problem:
    """A refusal of the engine, with the caller's name of the field."""
    field = theirs(problem.field or "", names)
    detail = problem.detail
    if problem.field and detail.startswith(problem.field):
        detail = field + detail.removeprefix(problem.field)
    return Problem(problem.status, problem.title, detail, field or None, retry_after=problem.retry_after)


def theirs(field: str, names: Names) -> str:
    """The caller's name of a field of a call, which may be an entry of a list.

    >>> theirs("base_ranking[2]", {"base_ranking": "hits", "k": "size"})
    'hits[2]'
    """
    if field in names:
        return names[field]
    name, bracket, place = field.partition("[")
    return names.get(name, name) + bracket + place
