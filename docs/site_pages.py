"""Gather the pages of the documentation site in build/docs: those of docs/, and those that are read off the sources.

    python docs/site_pages.py [FOLDER]

Notebooks, HTTP bodies, settings and changes are made each time, so there is no copy that could be out of date.
Formulas are written in LaTeX, as code hosts read it (a block ``math``, and dollar, backtick, backtick, dollar within a
sentence); on the site they are MathML, which browsers draw by themselves: nothing is loaded or run.
"""

import inspect
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from notebook_pages import notebook_page  # noqa: E402 (beside this file)

_FORMULA = re.compile(r"^```math\n(?P<block>.*?)\n```$|\$`(?P<inline>[^`]+)`\$", re.MULTILINE | re.DOTALL)


def gather(folder: Path) -> None:
    """Put all pages, pictures and styles into a folder, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path, text in made_pages():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(with_formulas(page.read_text(encoding="utf-8")), encoding="utf-8")


def with_formulas(text: str) -> str:
    """A page with its formulas as MathML."""
    return _FORMULA.sub(lambda found: _drawn(found["block"], found["inline"]), text)


def _drawn(block: str | None, inline: str | None) -> str:
    formula = convert(block or inline, display="block" if block else "inline")
    formula = re.sub(r"<mi>(log|exp|min|max)</mi>", r'<mo lspace="0.17em" rspace="0.17em">\1</mo>', formula)
    formula = re.sub(
        r"<msup>(<mi>[^<]+</mi>)<mi>(&#x0203[23];)</mi></msup>", r"\1<mi>\2</mi>", formula
    )  # has its height
    for mark in "*_|":  # which Markdown would take for its own
        formula = formula.replace(mark, f"&#{ord(mark)};")
    return f'<div class="formula">{formula}</div>' if block else f'<span class="formula">{formula}</span>'


def made_pages() -> Iterator[tuple[str, str]]:
    """Path and text of every page that is made."""
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.py")):
        yield f"notebooks/{notebook.stem}.md", notebook_page(notebook)
    yield "reference/http.md", http_page()
    yield "reference/settings.md", settings_page()
    yield "reference/changes.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


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
    """The parts of the page: title, what to know, and the modules whose structures are the bodies."""
    from saferank.service.http import endpoints
    from saferank.service.http.adapters import browser, ubi
    from saferank.service.wire import calls, problems, views

    strict = "Fields that are not listed are refused."
    lenient = "Fields that are not listed are accepted and ignored."
    return [
        ("The two calls and the switches", strict, [calls]),
        ("Views", "What reading answers.", [views, endpoints]),
        ("Refusals", "Every refusal is `application/problem+json`.", [problems]),
        ("Beacon", f"{strict} [In the browser](../engineers/browser.md) has the script that sends it.", [browser]),
        ("OpenSearch UBI", f"{lenient} [UBI](../engineers/ubi.md) says what they mean here.", [ubi]),
    ]


def _paths() -> Iterator[str]:
    """A row of a table for every path of a service."""
    from saferank.service.http.adapters import browser, ubi
    from saferank.service.http.endpoints import endpoints

    for endpoint in (*endpoints, *browser.endpoints, *ubi.endpoints):
        yield f"| `{endpoint.method} {endpoint.path}` | {endpoint.summary} |"


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


def _models(module: ModuleType) -> Iterable[type[msgspec.Struct]]:
    """The bodies that a module defines, those that only serve as bases left out."""
    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    return [value for value in own if issubclass(value, msgspec.Struct) and value.__struct_fields__]


def _rows(model: type[msgspec.Struct]) -> Iterator[str]:
    described = msgspec.json.schema_components([model])[1][model.__name__]
    for name, about in described["properties"].items():
        default = "required" if name in described.get("required", ()) else _default(about.get("default"))
        meaning = about.get("description", "").replace("|", "\\|")
        yield f"| `{name}` | {_kind(about)} | {meaning} | {default} |"


def _default(value: Any) -> str:
    return "" if value is None or value in ((), {}, [], "") else f"`{value}`"


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(_kind(option) for option in schema[choice])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


if __name__ == "__main__":
    gather(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
