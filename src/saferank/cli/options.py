"""Options that several commands share, and how lists of names are read."""

import os
from collections.abc import Callable
from typing import Annotated

import typer

from saferank.cli.errors import InputError

ALL_POLICIES = "kl-ucb-br,bubble-rank,top-rank,uni-rank,original"
"""The five of the paper."""

OURS = "safe-blocks,safe-order"
"""Ours, beyond the paper."""
LONGEST = 10**15
"""The largest number of rounds: whole numbers up to here are exact as floats."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""How many cores this process may use."""

Policies = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Policies to play, with commas between; see `saferank policies`.",
        show_default="the five of the paper",
    ),
]
Positions = Annotated[int, typer.Option(min=1, metavar="K", help="How many items a page shows.")]
Models = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these click models, with commas between.", show_default="all"),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|MODULE",
        help="Python file or module that registers policies or click models of yours; may be given several times.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Play on this Dask cluster, like tcp://host:8786, instead of on threads here; same results.",
        show_default="this machine",
    ),
]


def at_most_if_given(limit: int) -> Callable[[int | None], int | None]:
    """The same for an option that may be left out."""
    check = at_most(limit)
    return lambda value: None if value is None else check(value)


def at_most(limit: int) -> Callable[[int], int]:
    """A check for an option whose range would only clutter the help."""

    def check(value: int) -> int:
        if value > limit:
            raise typer.BadParameter(f"{value} is more than {limit}")
        return value

    return check


Rounds = Annotated[int, typer.Option(min=1, callback=at_most(LONGEST), metavar="T", help="Pages shown in a run.")]
Rule = Annotated[
    str, typer.Option(metavar="RULE", help="Decision rule: paper:DELTA or anytime:ALPHA; 1/T is one over --rounds.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same results.")]
Jobs = Annotated[
    int,
    typer.Option(
        min=1,
        callback=at_most(1024),
        metavar="N",
        help="Threads; results do not depend on it.",
        show_default="number of cores",
    ),
]


def names_in(text: str, option: str) -> tuple[str, ...]:
    """The different names of a list like ``pbm,cm``.

    >>> names_in("pbm, cm", "--models")
    ('pbm', 'cm')
    """
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"{option}: found {text!r}, expected names with commas between, for example a,b")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{option}: {twice[0]} is there twice; keep one")
    return names
