"""A template filled: the page of a report and that of a forecast."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from saferank.reporting.figures.panels import colour_variable
from saferank.reporting.looks import dark_colours, model_name
from saferank.reporting.readings import in_standard_errors
from saferank.table import TextTable


def render(template: str = "report.html", /, **content: Any) -> str:
    """A page as HTML; whatever comes from results is escaped."""
    environment = Environment(
        loader=PackageLoader("saferank.reporting"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "model": model_name, "drawn": Markup, "errors": in_standard_errors, "table": _table,
    }  # fmt: skip
    environment.globals |= {"light": _colours(dark=False), "dark": _colours(dark=True)}
    page = environment.get_template(template).render(**content)
    return page.encode("utf-8", "replace").decode()


def _table(table: TextTable) -> Markup:
    return Markup(table.html())


def _colours(*, dark: bool) -> list[tuple[str, str]]:
    return [(colour_variable(light), night if dark else light) for light, night in dark_colours().items()]
