"""Pages of the documentation site that are made while it is built: notebooks, HTTP bodies, settings, changes.

A hook of mkdocs (see mkdocs.yml). These pages are read off the sources, so there is no copy that could be out of date.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
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
    """The bodies of calls and answers, field by field."""
    from saferank.service.wire import calls, problems, views

    lines = [
        "# HTTP API", "",
        "The endpoints are listed in [the live service](../service.md#endpoints), refusals in "
        "[its table of statuses](../service.md#refusals). A running service describes itself for machines at "
        "`/openapi.json`. This page has the bodies of calls and answers. Fields that are not listed are refused.",
    ]  # fmt: skip
    for title, module in (("The two calls and the switches", calls), ("Views", views), ("Refusals", problems)):
        lines += ["", f"## {title}"]
        for model in _models(module):
            lines += ["", f"### {model.__name__}", "", inspect.cleandoc(model.__doc__ or ""), ""]
            lines += ["| field | type | meaning | default |", "|---|---|---|---|", *_rows(model)]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting of the service."""
    from saferank.service.settings import Settings, TenantKeys

    lines = [
        "# Settings of the service", "",
        "From the command line (`--set NAME=VALUE`), the environment (`SAFERANK_SERVE_NAME`) or a file; "
        "[the live service](../service.md#settings) says how they are combined.",
    ]  # fmt: skip
    for title, model in (("Settings", Settings), ("Keys of a tenant", TenantKeys)):
        lines += ["", f"## {title}", "", "| setting | type | meaning | default |", "|---|---|---|---|", *_rows(model)]
    return "\n".join(lines) + "\n"


def _models(module: ModuleType) -> Iterable[type[BaseModel]]:
    """The bodies that a module defines, those that only serve as bases left out."""
    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    return [value for value in own if issubclass(value, BaseModel) and value.model_fields]


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
