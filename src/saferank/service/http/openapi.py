"""The OpenAPI document, from the endpoints and the structures of their bodies; and a page of it for people."""

import html
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from typing import Any

import msgspec

from saferank._version import __version__
from saferank.service.http.endpoints import Endpoint
from saferank.service.settings import Settings
from saferank.service.wire.calls import ID_PATTERN, LARGEST, LONGEST_ID
from saferank.service.wire.problems import MEDIA_TYPE, ProblemBody

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
_NAME = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": ID_PATTERN}
_AT = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": LARGEST}, {"type": "string", "format": "date-time"}]}
_TEMPLATE = "#/components/schemas/{name}"
OPEN_PATHS = ("/healthz", "/readyz")


def document(endpoints: Iterable[Endpoint], settings: Settings) -> dict[str, Any]:
    """The whole document."""
    described = [endpoint for endpoint in endpoints if endpoint.answer != b"text/javascript"]
    kinds = {kind: None for endpoint in described for kind in (*endpoint.bodies, *_answers(endpoint))}
    schemas = msgspec.json.schema_components([*kinds, ProblemBody], ref_template=_TEMPLATE)[1]
    for name in ("base_ranking", "candidates"):
        schemas["RankCall"]["properties"][name]["maxItems"] = settings.max_items
    paths: dict[str, Any] = {}
    for endpoint in described:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, settings)
    about = "Safe online re-ranking: two calls, `rank` and `feedback`; the rest is for looking and for switches."
    components = {"schemas": schemas, **({"securitySchemes": _SCHEMES} if settings.has_keys else {})}
    info = {"title": "saferank", "version": __version__, "description": about}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _answers(endpoint: Endpoint) -> tuple[Any, ...]:
    if isinstance(endpoint.answer, bytes) or endpoint.answer is dict:
        return ()
    return endpoint.answer if isinstance(endpoint.answer, tuple) else (endpoint.answer,)


def _operation(endpoint: Endpoint, settings: Settings) -> dict[str, Any]:
    """One endpoint."""
    made: dict[str, Any] = {
        "operationId": endpoint.name or endpoint.handler.__name__,
        "summary": endpoint.summary,
        "description": cleandoc(endpoint.handler.__doc__ or ""),
        "responses": {"200": _success(endpoint), **_refusals(endpoint, settings)},
    }
    parameters = list(_parameters(endpoint))
    if parameters:
        made["parameters"] = parameters
    if endpoint.bodies:
        schema = _one_of([kind.__name__ for kind in endpoint.bodies], "oneOf")
        if endpoint.path in ("/ubi_events", "/ubi_queries"):  # one, or a list of them
            schema = {"oneOf": [schema, {"type": "array", "items": schema}]}
        kind = "text/plain" if endpoint.path == "/v1/beacon" else "application/json"
        made["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    if settings.has_keys and endpoint.path not in OPEN_PATHS:
        made["security"] = [{"bearer": []}, {"header": []}, *([{}] if endpoint.path == "/metrics" else [])]
    for status, answer in made["responses"].items():
        headers = answer.setdefault("headers", {})
        headers["X-Request-Id"] = {"schema": {"type": "string"}, "description": "Also in the log."}
        if status in ("429", "503"):
            headers["Retry-After"] = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds."}
        if status == "401":
            headers["WWW-Authenticate"] = {"schema": {"type": "string"}}
    return made


def _success(endpoint: Endpoint) -> dict[str, Any]:
    if isinstance(endpoint.answer, bytes):
        return {"description": "As text.", "content": {endpoint.answer.decode(): {"schema": {"type": "string"}}}}
    names = [kind.__name__ for kind in _answers(endpoint)]
    schema = _one_of(names, "anyOf") if names else {"type": "object"}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _one_of(names: list[str], word: str) -> dict[str, Any]:
    references = [{"$ref": _TEMPLATE.format(name=name)} for name in names]
    return references[0] if len(references) == 1 else {word: references}


def _refusals(endpoint: Endpoint, settings: Settings) -> dict[str, Any]:
    statuses = {*endpoint.also}
    if endpoint.who != "anybody":
        statuses |= {401, 403, 429, 503}
    if endpoint.bodies:
        statuses |= {400, 408, 413, 415, 422}
    if endpoint.query is not None or "{" in endpoint.path:
        statuses.add(422)
    if "{" in endpoint.path:
        statuses.add(404)
    if not settings.has_keys and endpoint.path not in OPEN_PATHS:
        statuses.add(421)
    content = {MEDIA_TYPE: {"schema": {"$ref": _TEMPLATE.format(name="ProblemBody")}}}
    return {str(status): {"description": _MEANINGS[status], "content": content} for status in sorted(statuses)}


def _parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if "{" in endpoint.path:
        name = endpoint.path.partition("{")[2].partition("}")[0]
        yield {"name": name, "in": "path", "required": True, "schema": _NAME}
    if endpoint.query is not None:
        schema = msgspec.json.schema_components([endpoint.query], ref_template=_TEMPLATE)[1]
        for name, about in schema[endpoint.query.__name__]["properties"].items():
            meaning = about.pop("description")
            about.pop("default")  # of what is left out when there is none
            shape = _AT if name == "at" else about
            yield {"name": name, "in": "query", "required": False, "description": meaning, "schema": shape}


def readable(described: dict[str, Any]) -> bytes:
    """The document as a page."""
    lines = [f"<!doctype html><html lang=en><meta charset=utf-8><title>saferank {__version__}</title>"]
    lines += [f"<h1>saferank {__version__}</h1>", f"<p>{html.escape(described['info']['description'])}</p>"]
    lines.append('<p>For machines: <a href="/openapi.json">openapi.json</a></p>')
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            lines.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            lines.append(f"<p>{html.escape(operation['summary'])}. {html.escape(operation['description'])}</p>")
            lines.append(
                f"<p>Sends {_linked(operation.get('requestBody'))}, gets {_linked(operation['responses']['200'])}.</p>"
            )
    for name, schema in described["components"]["schemas"].items():
        lines.append(f'<h3 id="{name}">{name}</h3><p>{html.escape(schema.get("description", ""))}</p><dl>')
        for field, about in schema.get("properties", {}).items():
            needed = " (required)" if field in schema.get("required", ()) else ""
            lines.append(f"<dt><code>{field}</code>{needed}</dt><dd>{html.escape(about.get('description', ''))}</dd>")
        lines.append("</dl>")
    return "\n".join(lines).encode()


def _linked(part: Any) -> str:
    """The structures that a body may be."""
    schemas = [content.get("schema", {}) for content in (part or {}).get("content", {}).values()]
    options = [option for schema in schemas for option in (schema.get("oneOf") or schema.get("anyOf") or [schema])]
    names = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
    return " or ".join(f'<a href="#{name}">{name}</a>' for name in names) or ("text" if part else "nothing")
