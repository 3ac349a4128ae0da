"""The web application: every endpoint, put together."""

import json
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.routing import Route

from saferank.service.http.adapters.browser.routes import browser_routes
from saferank.service.http.adapters.ubi import ubi_routes
from saferank.service.http.gate import Gate, internal_error, problem_headers
from saferank.service.http.hub import Hub
from saferank.service.http.openapi import document
from saferank.service.http.routes import acting, health, reading
from saferank.service.http.routes.hot import add_hot_routes, hot_calls
from saferank.service.wire.problems import MEDIA_TYPE, Problem
from saferank.service.wire.validation import sentence, where

DASHBOARD = "dashboard"


def make_app(hub: Hub) -> Gate:
    """The application of a service."""
    app = FastAPI(title="saferank", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.hub = hub
    calls = hot_calls(hub)
    add_hot_routes(app, calls)
    for routes in (reading, acting, health):
        app.include_router(routes.router)
    described = _describing(app, hub)
    app.router.routes.append(Route("/openapi.json", described, methods=["GET"]))
    app.router.routes += [*ubi_routes(hub), *browser_routes(hub)]
    app.router.routes += [_file_route(path, content) for path, content in dashboard_files().items()]
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(Exception, _admit_fault)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    app.add_exception_handler(HTTPException, _refuse_path)
    if not hub.settings.traces:
        return Gate(app, hub, calls)
    from saferank.service.http.adapters.tracing import traced_app, traced_call  # needs OpenTelemetry, an extra

    return Gate(traced_app(app), hub, {path: traced_call(call) for path, call in calls.items()})


def dashboard_files() -> dict[str, bytes]:
    """The files of the dashboard by path; ``index.html`` is at ``/``."""
    found: dict[str, bytes] = {}
    _collect(files("saferank.service") / DASHBOARD, "/", found)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def _collect(folder: Traversable, path: str, found: dict[str, bytes]) -> None:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            _collect(entry, f"{path}{entry.name}/", found)
        elif not entry.name.startswith((".", "_")) and not entry.name.endswith(".py"):
            found[f"{path}{entry.name}"] = entry.read_bytes()


def _file_route(path: str, content: bytes) -> Route:
    kind = mimetypes.guess_type("index.html" if path == "/" else path)[0] or "application/octet-stream"

    async def serve(request: Request) -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return Route(path, serve, methods=["GET"])


def _describing(app: FastAPI, hub: Hub) -> Any:
    described: dict[str, Any] = {}

    async def openapi(request: Request) -> Response:
        """The API, described for machines."""
        if not described:
            described.update(document(app, hub.settings))
        return Response(json.dumps(described), media_type="application/json")

    return openapi


def problem_response(problem: Problem) -> Response:
    """A problem as an answer of the framework."""
    response = Response(json.dumps(problem.as_dict()), problem.status, media_type=MEDIA_TYPE)
    response.raw_headers += problem_headers(problem)
    return response


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(error)


async def _refuse_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: ErrorDetails = error.errors()[0]
    first["loc"] = first["loc"][1:]  # without the word query
    field = where(first)
    return problem_response(Problem(422, "Invalid request", f"{field} {sentence(first)}", field))


async def _refuse_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.scope["path"][:200]
    if error.status_code != 405:
        return problem_response(Problem(404, "Not found", f"there is nothing at {path}"))
    allowed = dict(error.headers or {}).get("Allow", "")
    response = problem_response(Problem(405, "Method not allowed", f"{path} takes {allowed}"))
    response.headers["Allow"] = allowed
    return response


async def _admit_fault(request: Request, error: Exception) -> Response:
    return problem_response(internal_error())  # the framework raises the error again, and the gate logs it
