"""The OpenAPI document: what FastAPI derives from the routes, completed by what it cannot know."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from saferank._version import __version__
from saferank.service.settings import Settings
from saferank.service.wire.calls import (
    FeedbackBatch,
    FeedbackCall,
    KillCall,
    RankCall,
    ResetCall,
    RollbackCall,
    SettingsCall,
)
from saferank.service.wire.problems import MEDIA_TYPE, ProblemBody

_CALLS: tuple[type[BaseModel], ...] = (RankCall, FeedbackCall, FeedbackBatch, KillCall, RollbackCall, ResetCall)
_MODELS: tuple[type[BaseModel], ...] = (*_CALLS, SettingsCall, ProblemBody)
_MEANINGS = {
    400: "The body is not strict JSON.",
    401: "No key, an unknown key, or a token that this service did not sign.",
    403: "The key or token is not for this.",
    404: "There is no such thing.",
    408: "The body took too long to arrive.",
    409: "The event_id was used before, with another body.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The Host header names another machine than this one; without keys only this one may call.",
    422: "A field is missing, unknown or out of range; `field` names it.",
    429: "Too many requests of this tenant; try again after the seconds in Retry-After.",
    503: "Too busy, or the disk does not write; try again after the seconds in Retry-After.",
}
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
OPEN_PATHS = ("/healthz", "/readyz")
OPEN_TO_THIS_MACHINE = ("/metrics",)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an endpoint, for its documentation."""
    reference = {"schema": {"$ref": "#/components/schemas/ProblemBody"}}
    return {status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: reference}} for status in statuses}


def request_body(*models: str) -> dict[str, Any]:
    """The body of an endpoint that reads it by itself."""
    references = [{"$ref": f"#/components/schemas/{model}"} for model in models]
    schema = references[0] if len(references) == 1 else {"oneOf": references}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def document(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """The whole document."""
    description = "Safe online re-ranking: two calls, `rank` and `feedback`; the rest is for looking and for switches."
    made = get_openapi(title="saferank", version=__version__, description=description, routes=app.routes)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    _, definitions = models_json_schema(
        [(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}"
    )
    schemas.update(definitions["$defs"])
    _complete_calls(schemas, settings)
    for path, operations in made["paths"].items():
        for operation in operations.values():
            _complete_operation(path, operation, settings)
    if settings.has_keys:
        made["components"]["securitySchemes"] = _SCHEMES
    return made


def _complete_calls(schemas: dict[str, Any], settings: Settings) -> None:
    for name in ("base_ranking", "candidates"):
        schemas["RankCall"]["properties"][name]["maxItems"] = settings.max_items
    named = [
        {"required": ["token"], "properties": {"token": {"type": "string"}, "impression_id": {"type": "null"}}},
        {"required": ["impression_id"], "properties": {"impression_id": {"type": "string"}, "token": {"type": "null"}}},
    ]
    schemas["FeedbackCall"]["oneOf"] = named


def _leave_out_null(schema: dict[str, Any]) -> None:
    """A parameter of a query is there or not; there is no null in a query."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del schema["anyOf"]
        schema |= kinds[0]


def _complete_operation(path: str, operation: dict[str, Any], settings: Settings) -> None:
    if path not in OPEN_PATHS:
        if settings.has_keys:
            operation["security"] = [{"bearer": []}, {"header": []}, *([{}] if path in OPEN_TO_THIS_MACHINE else [])]
        else:
            operation["responses"]["421"] = refusals(421)[421]
    for parameter in operation.get("parameters", ()):
        _leave_out_null(parameter["schema"])
    for status, answer in operation["responses"].items():
        headers = answer.setdefault("headers", {})
        headers["X-Request-Id"] = {"schema": {"type": "string"}, "description": "Also in the log."}
        if status in ("429", "503"):
            headers["Retry-After"] = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds."}
        if status == "401":
            headers["WWW-Authenticate"] = {"schema": {"type": "string"}}
