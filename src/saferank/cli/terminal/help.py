"""How help is shown: flags without a type, arguments by their names, commands by what they are about."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

EXPERIMENTS, DATA, SERVICE, STORES = "Experiments", "Data", "Service", "Stores of a service"
"""The groups of commands in ``saferank --help``."""


class _Plain:
    """Mixed into a command: newer versions of typer write ``{LOG}`` for an argument and ``<bool>`` for a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag has no value, so it shows none."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the line of usage; braces would say that there are several to choose from."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class PlainCommand(_Plain, TyperCommand):
    """A command."""


class PlainGroup(_Plain, TyperGroup):
    """A group of commands."""
