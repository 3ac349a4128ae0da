"""How a command ends early: one line on stderr and an exit code.

The library says what is wrong (``saferank.errors``); here its arguments get the names of the options.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from saferank.errors import ArgumentError, ClusterError, RunError, RunInterrupted, UsageError


class CommandError(Exception):
    """A reason to stop, in one line."""

    label = "error: "
    exit_code = 1


class InputError(CommandError):
    """Something that was given cannot be used; the message names it and says what would do."""

    exit_code = 2


class Interrupted(CommandError):  # noqa: N818 (nothing went wrong)
    """Ctrl-C: no error."""

    label = ""
    exit_code = 130


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with an interrupt of the library as a ``CommandError``: typer would drop its message."""

    @functools.wraps(command)
    def called(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except RunInterrupted as interrupt:
            raise Interrupted(_with_options(str(interrupt))) from None

    return called


def as_command_error(problem: UsageError | RunError) -> CommandError:
    """An error of the library as one of the command line."""
    if isinstance(problem, ArgumentError):
        return InputError(_with_options(f"--{problem.argument.replace('_', '-')}: {problem.reason}"))
    message = _with_options(str(problem))
    if isinstance(problem, UsageError):
        return InputError(message)
    return CommandError(f"--cluster: {message}" if isinstance(problem, ClusterError) else message)


def _with_options(message: str) -> str:
    """The library names arguments of its functions; a reader of the terminal needs the options and the command."""
    for argument, option in (("resume=True", "--resume"), ("overwrite=True", "--overwrite"), ("out=", "--out")):
        message = message.replace(f" {argument}", f" {option}")
    return message.replace("repeat the call with", "repeat the command with").replace("max_bad=", "--max-bad ")


@contextmanager
def naming(**names: object) -> Iterator[None]:
    """Inside, arguments that are no options are called as they were typed: ``naming(instances="mine.json")``."""
    try:
        yield
    except ArgumentError as problem:
        if problem.argument not in names:
            raise
        raise InputError(_with_options(f"{names[problem.argument]}: {problem.reason}")) from problem
