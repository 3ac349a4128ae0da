"""``saferank policies``: what there is to choose from."""

import inspect
import sys
from collections.abc import Mapping

import typer
from rich import box
from rich.table import Table

from saferank.cli.terminal.console import STDOUT
from saferank.cli.terminal.options import Plugins


def command(plugin: Plugins = None) -> None:
    """List the policies, click models and decision rules, each with a line about it.

    **Example**: `saferank policies --plugin my_policy.py`

    **What comes out**: the names that --policies, --models and --rule take, your plug-ins among them.
    """
    from saferank.click_models import CLICK_MODELS
    from saferank.plugins import load_plugins
    from saferank.policies import POLICIES
    from saferank.statistics.decision import RULES

    load_plugins(plugin or ())
    _print("policies", {name: _of_module(kind.policy) for name, kind in POLICIES.items()})
    _print("click models", {name: _of_module(kind) for name, kind in CLICK_MODELS.items()})
    _print("decision rules", {f"{name}:LEVEL": _first_line(inspect.getdoc(kind)) for name, kind in RULES.items()})
    typer.echo("The level 1/T is one over the number of rounds, for example paper:1/T.")


def _first_line(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def _of_module(kind: type) -> str:
    return _first_line(inspect.getdoc(sys.modules[kind.__module__]))


def _print(title: str, lines: Mapping[str, str]) -> None:
    table = Table("name", "what it is", title=title, box=box.SIMPLE_HEAD, title_justify="left", show_header=False)
    for name, line in lines.items():
        table.add_row(name, line)
    STDOUT.print(table, markup=False)
