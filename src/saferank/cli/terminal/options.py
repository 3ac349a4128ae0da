"""Options that several commands share, and how numbers and lists are read. What they may be, the library checks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from saferank.cli.terminal.errors import InputError


def number(text: object) -> int:
    """A whole number as people write it: 100000, 100_000 or 1e5.

    >>> number("1e5"), number("100_000"), number(7)
    (100000, 100000, 7)
    """
    try:
        return int(str(text))
    except ValueError:
        pass
    try:
        value = float(str(text))
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{str(text)!r} is not a whole number, for example 100000 or 1e5")


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


def names_if_given(text: str | None, option: str) -> tuple[str, ...] | None:
    """The same for an option that may be left out."""
    return None if text is None else names_in(text, option)


def numbers_in(text: str, option: str) -> tuple[int, ...]:
    """The numbers of a list like ``10,1e3``."""
    try:
        return tuple(number(part.strip()) for part in text.split(","))
    except typer.BadParameter as problem:
        raise InputError(f"{option}: {problem.message}") from problem


def numbers_or_none_in(text: str, option: str) -> tuple[int | None, ...]:
    """The numbers of a list like ``none,1e3``.

    >>> numbers_or_none_in("none, 1e3", "--lifetime")
    (None, 1000)
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(None if part == "none" else numbers_in(part, option)[0] for part in parts)


def floats_in(text: str, option: str) -> tuple[float, ...]:
    """The numbers of a list like ``1,0.5``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as problem:
        raise InputError(f"{option}: found {text!r}, expected numbers with commas between") from problem


def settings_in(texts: Iterable[str], option: str) -> dict[str, list[str]]:
    """The values by hyper-parameter.

    >>> settings_in(["bubble-rank.hidden_duels=true,false"], "--set")
    {'bubble-rank.hidden_duels': ['true', 'false']}
    """
    settings: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or "." not in key:
            raise InputError(
                f"{option}: found {text!r}, expected POLICY.NAME=VALUES, like bubble-rank.hidden_duels=true,false"
            )
        if key in settings:
            raise InputError(f"{option}: {key} is there twice; put all its values into one")
        settings[key] = [value.strip() for value in values.split(",")]
    return settings


Policies = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Policies to play, with commas between; see `saferank policies`.",
        show_default="the five of the paper",
    ),
]
Positions = Annotated[int, typer.Option(parser=number, metavar="K", help="How many items a page shows.")]
Models = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these click models, with commas between.", show_default="all"),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|MODULE",
        help="Python file or module that registers policies or click models of yours; they are checked before anything "
        "is played. May be given several times.",
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
Rounds = Annotated[int, typer.Option(parser=number, metavar="T", help="Pages shown in a run, for example 1e5.")]
Rule = Annotated[
    str, typer.Option(metavar="RULE", help="Decision rule: paper:DELTA or anytime:ALPHA; 1/T is one over --rounds.")
]
Seed = Annotated[int, typer.Option(parser=number, metavar="N", help="The same seed gives the same results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        parser=number, metavar="N", help="Threads; results do not depend on it.", show_default="number of cores"
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="yandex-personalized, yandex-relevance, sessions (NDJSON, Parquet), ubi, ga4 or segment.",
    ),
]
Log = Annotated[Path, typer.Argument(metavar="LOG", help="Click log, plain or gzip.")]
MostFrequent = Annotated[int, typer.Option(parser=number, metavar="N", help="The N most frequent queries.")]
Iterations = Annotated[int, typer.Option(parser=number, metavar="N", help="Iterations of EM.")]
MaxBad = Annotated[
    float, typer.Option(min=0, max=1, metavar="SHARE", help="Stop when more than this share of the lines is bad.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume the run in DIR, or start one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove the run that is in DIR and start again.")]
