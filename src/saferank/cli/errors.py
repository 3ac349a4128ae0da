"""How a command ends before its time."""

from collections.abc import Iterator
from contextlib import contextmanager


class CommandError(Exception):
    """A reason to stop, in one line."""

    label = "error: "
    exit_code = 1


class InputError(CommandError):
    """Something that was given cannot be used; the message names it and says what would do."""

    exit_code = 2


class OutputError(CommandError):
    """What was asked for could not be written."""


class Interrupted(CommandError):  # noqa: N818 (nothing went wrong)
    """Ctrl-C: no error of anybody's."""

    label = ""
    exit_code = 130


@contextmanager
def blaming(option: str) -> Iterator[None]:
    """Turn a ``ValueError`` into an ``InputError`` that begins with the option."""
    try:
        yield
    except ValueError as problem:
        raise InputError(f"{option}: {problem}") from problem


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn an ``OSError`` into an ``OutputError`` that names the file."""
    try:
        yield
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
