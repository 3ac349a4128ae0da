"""The errors that the library raises on purpose, in sentences that a person can act on.

``UsageError`` (a ``ValueError``): something that was given cannot be used. ``OutputError``: a file cannot be written.
``RunInterrupted`` (a ``KeyboardInterrupt``): Ctrl-C or the stop button of a notebook, with how far the work had come.
The command line turns them into one line and an exit code; it checks nothing itself.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class UsageError(ValueError):
    """Something that was given cannot be used; the message says what, and what is expected."""


class ArgumentError(UsageError):
    """An argument of a function that cannot be used."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{argument}: {reason}")
        self.argument = argument
        self.reason = reason


class RunError(RuntimeError):
    """The work could not be finished, though nothing was wrong with the arguments."""


class OutputError(RunError):
    """A file that could not be written."""


class ClusterError(RunError):
    """What is wrong with the cluster, in a sentence."""


class RunInterrupted(KeyboardInterrupt):
    """Interrupted by the user; the message says what is kept."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known: the one that may be meant; nothing where none is near.

    >>> did_you_mean("klucb-br", ["kl-ucb-br", "top-rank"]), did_you_mean("best", ["top-rank"])
    ("; did you mean 'kl-ucb-br'?", '')
    """
    import difflib

    near = difflib.get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence about a name that is not known, and those that are.

    >>> unknown("part", "stduy", ["additions", "study"])
    "unknown part 'stduy'; known ones: additions, study; did you mean 'study'?"
    """
    there = list(known)
    return f"unknown {what} {name!r}; known ones: {', '.join(there)}{did_you_mean(name, there)}"


@contextmanager
def argument(name: str) -> Iterator[None]:
    """Turn a ``ValueError`` inside into an ``ArgumentError`` about this argument."""
    try:
        yield
    except ArgumentError:
        raise
    except ValueError as problem:
        raise ArgumentError(name, str(problem)) from problem


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn an ``OSError`` inside into an ``OutputError`` that names the file."""
    try:
        yield
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem


def several(values: object, name: str) -> tuple[Any, ...]:
    """An argument that holds several values, a single one is one value, and a text is not its letters.

    >>> several("pbm", "models"), several(["pbm", "cm"], "models")
    (('pbm',), ('pbm', 'cm'))
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    return tuple(values)


def whole_number(value: object, name: str, at_least: int = 1, at_most: int | None = None) -> int:
    """An argument as an int within bounds, or an ``ArgumentError``; ``1e5`` is a whole number.

    >>> whole_number(1e5, "rounds")
    100000
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value // 1:
        raise ArgumentError(name, f"found {value!r}, expected a whole number")
    number = int(value)
    if number < at_least:
        raise ArgumentError(name, f"found {number}, expected at least {at_least}")
    if at_most is not None and number > at_most:
        raise ArgumentError(name, f"found {number}, expected at most {at_most}")
    return number
