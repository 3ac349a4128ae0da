"""What the ordinary endpoints ask for by type: the hub, the tenant that calls, a context's name from the path."""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Request
from pydantic import TypeAdapter, ValidationError

from saferank.service.http.hub import Hub
from saferank.service.wire.calls import ID_PATTERN, LONGEST_ID, Id
from saferank.service.wire.problems import Problem
from saferank.service.wire.validation import sentence

_ID = TypeAdapter(Id)
_NAMED = {"minLength": 1, "maxLength": LONGEST_ID, "pattern": ID_PATTERN}


def hub_of(request: Request) -> Hub:
    """The service that the application belongs to."""
    hub: Hub = request.app.state.hub
    return hub


def tenant_of(request: Request) -> str:
    """The tenant that calls, with a rank key; Problem 429 when it calls too often."""
    tenant = switching_tenant(request)
    hub_of(request).limits.admit(tenant)
    return tenant


def switching_tenant(request: Request) -> str:
    """The tenant that calls a kill switch, with a rank key. No rate limit may refuse it."""
    return hub_of(request).keys.ranking_tenant(request.scope["headers"])


def check_operator(request: Request) -> None:
    """Problem 401 or 403 unless the caller has an operator key."""
    hub_of(request).keys.check_operator(request.scope["headers"])


def context_name(context: Annotated[str, Path(json_schema_extra=_NAMED, description="Name of the context.")]) -> str:
    """The name of a context as it was sent in the path, decoded once."""
    return _decoded(context, "context")


def impression_name(impression_id: Annotated[str, Path(json_schema_extra=_NAMED)]) -> str:
    """The id of an impression in the path."""
    return _decoded(impression_id, "impression_id")


def checked(value: str, field: str) -> str:
    """A name from outside; Problem 422 when it cannot be one."""
    try:
        return _ID.validate_python(value)
    except ValidationError as problem:
        reason = sentence(problem.errors(include_url=False, include_input=False)[0])
        raise Problem(422, "Invalid request", f"{field} {reason}", field) from problem


def _decoded(value: str, field: str) -> str:
    try:
        return checked(unquote(value, errors="strict"), field)
    except UnicodeDecodeError as problem:
        raise Problem(422, "Invalid request", f"{field} in the path is not UTF-8", field) from problem


TheHub = Annotated[Hub, Depends(hub_of)]
Tenant = Annotated[str, Depends(tenant_of)]
SwitchingTenant = Annotated[str, Depends(switching_tenant)]
Operator = Depends(check_operator)
ContextName = Annotated[str, Depends(context_name)]
ImpressionName = Annotated[str, Depends(impression_name)]
