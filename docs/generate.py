"""Write the generated parts of the documentation: the reference of the commands, and the tables of measured figures.

make docs
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from saferank.cli import app
from saferank.cli.terminal.options import learn_options

PAGE = Path(__file__).parent / "reference" / "cli.md"


def reference() -> str:
    """The command-line reference in Markdown."""
    learn_options(app)
    group: Any = typer.main.get_command(app)
    lines = ["# Command line", "", "Generated from the commands by `make docs`; do not edit.", "", _prose(group.help)]
    for name, command in _commands(group, "saferank"):
        lines += ["", f"## {name}", "", _prose(command.help)]
        lines += ["", "| option | meaning | default |", "|---|---|---|"]
        lines += [_row(parameter) for parameter in command.params if parameter.name != "help"]
    return "\n".join(lines) + "\n"


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All commands below a group, with their full names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _row(parameter: Any) -> str:
    names = (
        ", ".join(f"`{name}`" for name in parameter.opts) if parameter.opts[0].startswith("-") else parameter.metavar
    )
    label = names or f"`{parameter.name.upper()}`"
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    hidden = shown is None or shown is False or shown == () or callable(shown)
    default = "" if hidden else str(shown)
    return f"| {label} | {' '.join((parameter.help or '').split())} | {default} |"


if __name__ == "__main__":
    from figure_tables import pages, with_tables

    PAGE.write_text(reference(), encoding="utf-8")
    for page in pages():
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
