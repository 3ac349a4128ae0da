"""Reading what a request carries: its type, its size and how long it may take are checked before it is understood."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from saferank.service.wire import strict_json
from saferank.service.wire.problems import Problem
from saferank.service.wire.validation import problem_of

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Call = TypeVar("_Call", bound=BaseModel)


def check_headers(headers: Iterable[tuple[bytes, bytes]], limit: int) -> None:
    """Problem for a body that is not JSON or is declared too large."""
    content_type = length = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise Problem(415, "Unsupported encoding", "send the body as it is, without Content-Encoding")
    if content_type != b"application/json":
        _check_content_type(content_type.decode("latin-1"))
    if length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise too_large(limit)


def _check_content_type(given: str) -> None:
    media_type, _, parameters = given.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() == "application/json" and charset in ("", "utf-8", "utf8"):
        return
    found = f"found {given[:100]!r}" if given else "it is missing"
    raise Problem(415, "Unsupported content type", f"Content-Type must be application/json; {found}")


def too_large(limit: int) -> Problem:
    """The refusal of a body beyond the limit."""
    return Problem(413, "Body too large", f"the body must have at most {limit} bytes; send less at a time")


async def read_body(receive: Receive, limit: int, seconds: float) -> bytes:
    """The whole body; Problem 413 as soon as it is too large, 408 when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
            body: bytes | bytearray = message.get("body", b"")
            if message.get("more_body"):
                body = bytearray(body)  # grows without being copied, however small the pieces
            while message.get("more_body") and len(body) <= limit:
                message = await receive()
                body += message.get("body", b"")
    except TimeoutError as problem:
        raise Problem(408, "Body too slow", f"the body took more than {seconds:g} s to arrive") from problem
    if len(body) > limit:
        raise too_large(limit)
    if message["type"] == "http.disconnect":
        raise Problem(400, "Body cut off", "the connection ended before the body did")
    return bytes(body)


def understood(kind: type[_Call], content: Any) -> _Call:
    """Checked content of a body; Problem 422 that names the field otherwise."""
    try:
        return kind.model_validate(content)
    except ValidationError as problem:
        raise problem_of(problem) from problem


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    content = strict_json.loads(body)
    if not isinstance(content, dict):
        raise Problem(422, "Invalid request", "the body must be a JSON object")
    return content
