"""The two calls of the engine, as adapters make them: the one place to change when the engine changes."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from saferank.service.http.hub import Hub
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.service.wire.problems import Problem

_Made = TypeVar("_Made", bound=BaseModel)


async def rank(hub: Hub, tenant: str, call: RankCall) -> RankAnswer:
    """The page to show."""
    return await hub.engine.rank(tenant, call)


async def feedback(hub: Hub, tenant: str, calls: Sequence[FeedbackCall]) -> list[FeedbackAnswer | Problem]:
    """What became of each report; returns once the clicks are on disk."""
    return await hub.engine.feedback(tenant, list(calls))


def made(kind: type[_Made], field: str, **parts: Any) -> _Made:
    """A call of the engine from checked parts; Problem 422 with the caller's name of the field if it cannot be one."""
    try:
        return kind(**parts)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise Problem(422, "Invalid request", f"{field} cannot be used: {first['msg']}", field) from problem
