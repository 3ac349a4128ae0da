"""Pages of the documentation site that are made while it is built: notebooks, HTTP bodies, settings, changes.

A hook of mkdocs (see mkdocs.yml). These pages are read off the sources, so there is no copy that could be out of date.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of docs/; mkdocs calls this."""
    for path, text in made_pages():
        files.append(File.generated(config, path, content=text))
    return files


def made_pages() -> Iterator[tuple[str, str]]:
    """Path and text of every page that is made."""
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.py")):
        yield f"notebooks/{notebook.stem}.md", notebook_page(notebook)
    yield "reference/http.md", http_page()
    yield "reference/settings.md", settings_page()
    yield "reference/changes.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def notebook_page(notebook: Path) -> str:
    """A jupytext script as Markdown: text cells as text, the others as Python."""
    _, *cells = _CELL.split(notebook.read_text(encoding="utf-8"))
    parts = [_cell(kind, body.strip("\n")) for kind, body in zip(cells[::2], cells[1::2], strict=True)]
    source = f"*The file is `docs/notebooks/{notebook.name}`; Jupyter opens it with jupytext. The tests run it.*"
    return "\n\n".join([parts[0], source, *parts[1:]]) + "\n"


def _cell(kind: str, body: str) -> str:
    if "[markdown]" not in kind:
        return f"```python\n{body}\n```"
    return re.sub(r"^# ?", "", body, flags=re.MULTILINE)


def http_page() -> str:
    """Every path, and the bodies of calls and answers, field by field."""
    lines = [
        "# HTTP API", "",
        "[The live service](../engineers/service.md#endpoints) says how to use it, and "
        "[its table of statuses](../engineers/service.md#refusals) what refusals mean. A running service describes its "
        "own paths for machines at `/openapi.json`; the paths of other protocols follow their specifications and are "
        "not in it.",
        "", "## Paths", "", "| path | what it does |", "|---|---|", *_paths(),
    ]  # fmt: skip
    for title, about, modules in _bodies():
        lines += ["", f"## {title}", "", about]
        for model in (model for module in modules for model in _models(module)):
            lines += ["", f"### {model.__name__}", "", inspect.cleandoc(model.__doc__ or ""), ""]
            lines += ["| field | type | meaning | default |", "|---|---|---|---|", *_rows(model)]
    return "\n".join(lines) + "\n"


def _bodies() -> list[tuple[str, str, list[ModuleType]]]:
    """The parts of the page: title, what to know, and the modules whose models are the bodies."""
    from saferank.service.http.adapters import ubi
    from saferank.service.http.adapters.browser import routes as browser
    from saferank.service.http.routes import health
    from saferank.service.wire import calls, effect_views, problems, shadow_views, views

    strict = "Fields that are not listed are refused."
    lenient = "Fields that are not listed are accepted and ignored."
    return [
        ("The two calls and the switches", strict, [calls]),
        ("Views", "What reading answers.", [views, effect_views, shadow_views, health]),
        ("Refusals", "Every refusal is `application/problem+json`.", [problems]),
        ("Beacon", f"{strict} [In the browser](../engineers/browser.md) has the script that sends it.", [browser]),
        ("OpenSearch UBI", f"{lenient} [UBI](../engineers/ubi.md) says what they mean here.", [ubi]),
    ]


def _paths() -> Iterator[str]:
    """A row of a table for every path of a service."""
    from saferank.service.http.adapters.browser.routes import browser_routes
    from saferank.service.http.adapters.ubi import ubi_routes
    from saferank.service.http.app import make_app
    from saferank.service.http.hub import Hub
    from saferank.service.http.openapi import document
    from saferank.service.settings import Settings

    engine: Any = SimpleNamespace(counters=dict)  # it is not asked anything
    hub = Hub(Settings(), engine)
    app: Any = make_app(hub).app
    for path, operations in document(app, hub.settings)["paths"].items():
        for method, operation in operations.items():
            yield f"| `{method.upper()} {path}` | {operation['summary']} |"
    for route in (*browser_routes(hub), *ubi_routes(hub)):
        methods = ", ".join(sorted(set(route.methods or ()) - {"HEAD"}))
        about = inspect.cleandoc(route.endpoint.__doc__ or "").partition("\n")[0]
        yield f"| `{methods} {route.path}` | {about.rstrip('.')} |"


def settings_page() -> str:
    """Every setting of the service."""
    from saferank.service.settings import Settings, TenantKeys

    lines = [
        "# Settings of the service", "",
        "From the command line (`--set NAME=VALUE`), the environment (`SAFERANK_SERVE_NAME`) or a file; "
        "[the live service](../engineers/service.md#settings) says how they are combined.",
    ]  # fmt: skip
    for title, model in (("Settings", Settings), ("Keys of a tenant", TenantKeys)):
        lines += ["", f"## {title}", "", "| setting | type | meaning | default |", "|---|---|---|---|", *_rows(model)]
    return "\n".join(lines) + "\n"


def _models(module: ModuleType) -> Iterable[type[BaseModel]]:
    """The bodies that a module defines, those that only serve as bases left out."""
    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    bodies = [value for value in own if issubclass(value, BaseModel) and value.model_fields]
    return [value for value in bodies if not any(other is not value and issubclass(other, value) for other in bodies)]


def _rows(model: type[BaseModel]) -> Iterator[str]:
    described = model.model_json_schema()
    for name, field in model.model_fields.items():
        about = described["properties"].get(field.alias or name, {})
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        meaning = (field.description or "").replace("|", "\\|")
        yield f"| `{field.alias or name}` | {_kind(about)} | {meaning} | {default} |"


def _default(value: Any) -> str:
    return "" if value is None or value in ((), {}, []) else f"`{value}`"


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(_kind(option) for option in schema[choice])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
