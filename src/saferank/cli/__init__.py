"""The command line: one file per subject; here the commands are registered and their errors are turned into exit codes.

Every error ends in one line on stderr and an exit code: 2 for input that cannot be used, 1 when the machine could not
do it (a full disk, no memory), 130 after Ctrl-C. A traceback is a bug. Commands import the compiled parts of the
package when they run, so that help and wrong options are answered at once.
"""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from saferank._version import COMMAND_LINE, __version__
from saferank.cli.commands import compile, data, experiments, serve, stores, studies
from saferank.cli.terminal.errors import CommandError, as_command_error, interruptible
from saferank.cli.terminal.help import DATA, EXPERIMENTS, SERVICE, STORES, PlainCommand, PlainGroup
from saferank.cli.terminal.options import learn_options
from saferank.errors import RunError, UsageError

__all__ = ["app", "main"]

# The base class of all wrong usage: click's own, or that of the copy of click inside newer versions of typer.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="saferank",
    cls=PlainGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    EXPERIMENTS: {
        "simulate": experiments.simulate, "compare": experiments.compare, "reproduce": studies.reproduce,
        "report": studies.report, "policies": experiments.policies, "bench": experiments.bench,
    },
    DATA: {"fit": data.fit, "forecast": data.forecast, "instances": data.instances},
    SERVICE: {"serve": serve.command, "compile": compile.command},
    STORES: {
        "replay": stores.replay, "export": stores.export, "backup": stores.backup, "restore": stores.restore,
        "forget": stores.forget,
    },
}  # fmt: skip
for _panel, _named in _COMMANDS.items():
    for _name, _command in _named.items():
        app.command(_name, cls=PlainCommand, rich_help_panel=_panel)(interruptible(_command))
app.add_typer(data.logs, name="logs", cls=PlainGroup, rich_help_panel=DATA)
app.add_typer(serve.keys, name="keys", cls=PlainGroup, rich_help_panel=SERVICE)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saferank {__version__}")
        raise typer.Exit


@app.callback()
def _saferank(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Safe online re-ranking: learn a better ranking from clicks without showing pages much worse than today's.

    A first run: `saferank simulate --queries 8 --models pbm --policies safe-draw,kl-ucb-br --rounds 5000 --out first`
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    COMMAND_LINE.set(("saferank", *given))
    learn_options(app, given)
    try:
        return int(app(given, prog_name="saferank", standalone_mode=False) or 0)
    except (UsageError, RunError, CommandError) as problem:
        failure = problem if isinstance(problem, CommandError) else as_command_error(problem)
        return _fail(f"{failure.label}{failure}", failure.exit_code)
    except _WrongUsage as problem:
        message, command = problem.format_message(), problem.ctx.command_path  # type: ignore[attr-defined]
        return _fail(f"error: {message.rstrip('.')}; see {command} --help", 2) if message else 2
    except MemoryError as problem:
        return _fail(f"error: not enough memory ({problem}); try fewer repetitions, checkpoints or --jobs", 1)
    except typer.Abort:
        return 130


def _fail(message: str, exit_code: int) -> int:
    typer.echo(f"saferank: {' '.join(message.split())}", err=True)
    return exit_code
