"""Options that several commands share, and how numbers and lists are read. What they may be, the library checks."""

import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.models import ArgumentInfo

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


def labels_in(text: str, option: str) -> dict[str, str]:
    """The names of a list like ``kl-ucb-br=Ours,original=Production``."""
    found: dict[str, str] = {}
    for part in text.split(","):
        policy, equals, name = (piece.strip() for piece in part.partition("="))
        if not (policy and equals and name):
            raise InputError(f"{option}: found {part.strip()!r}, expected POLICY=NAME, for example kl-ucb-br=Ours")
        found[policy] = name
    return found


def option(metavar: str, help: str, default: str | bool = True, *names: str, **more: Any) -> Any:
    """An option: what help calls its value, what it is for, and the words for its default where it is no value."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=default, **more)


def count(metavar: str, help: str, default: str | bool = True) -> Any:
    """An option that is a whole number."""
    return option(metavar, help, default, parser=number)


def flag(name: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help)


REQUIRED = inspect.Parameter.empty


Command = Callable[..., None]


def follows(source: str, /, **options: Any) -> Callable[[Command], Command]:
    """Give a command options for the arguments of the function that it calls, with their types and defaults.

    The function is named like ``saferank.fitting.fit:fit`` and imported by ``learn_options``. Arguments of the names in
    ``SHARED`` are the same in every command; ``options`` are the others, in place of shared ones too, and what the
    function does not take. An option is what ``option``, ``count`` or ``flag`` make; ``Annotated`` where it has another
    type here (a list is text); and a pair with a default where it has another one here.
    """

    def decorated(command: Command) -> Command:
        command.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        command.__annotations__ = {}
        command.follows = source, options  # type: ignore[attr-defined]
        return command

    return decorated


def learn_options(app: typer.Typer, called: Collection[str] | None = None) -> None:
    """Give the commands of these names (None: all) their options; others are listed with their first lines alone."""
    groups = [each.typer_instance for each in app.registered_groups if each.typer_instance]
    for each in [info for one in (app, *groups) for info in one.registered_commands]:
        command: Any = each.callback
        if hasattr(command, "follows") and (called is None or each.name in called):
            source, options = command.follows
            known = inspect.signature(pkgutil.resolve_name(source)).parameters
            wanted = {name: option for name in known if (option := (SHARED | options).get(name))} | options
            made = [_parameter(name, option, known.get(name)) for name, option in wanted.items()]
            made.sort(key=lambda each: not isinstance(get_args(each.annotation)[1], ArgumentInfo))  # arguments first
            command.__signature__ = inspect.Signature(made)
            command.__annotations__ = {option.name: option.annotation for option in made}


def _parameter(name: str, option: Any, source: inspect.Parameter | None) -> inspect.Parameter:
    option, default = option if isinstance(option, tuple) else (option, None if source is None else source.default)
    kind = option if get_origin(option) is Annotated else Annotated[_type_of(default, source), option]
    if get_args(kind)[0] in (str, str | None) and not isinstance(default, str | type):  # text of a list or a number
        default = (",".join(default) or None) if isinstance(default, tuple) else default
        default = None if default is None else str(default)
    if get_args(kind)[0] is bool and default is None:
        default = False
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _type_of(default: Any, source: inspect.Parameter | None) -> Any:
    """The type of a value on the command line."""
    if isinstance(default, bool | int | float):
        return type(default)
    words = str(None if source is None else source.annotation)
    kind = Path if "Path" in words else int if "int" in words else float if "float" in words else str
    return kind | None if default is None else kind


def asked(options: dict[str, Any], **reads: Callable[[str, str], Any]) -> dict[str, Any]:
    """The arguments for the function of the library: a command's options.

    Options have the names of arguments; ``reads`` are those whose text is a list or the like. What they may be, the
    function knows.
    """
    given = dict(options)
    for name, read in reads.items():
        if given[name] is not None:
            given[name] = read(given[name], f"--{name}")
    return given


Plugins = Annotated[
    list[str] | None,
    option(
        "FILE|MODULE",
        "Python file or module that registers policies or click models of yours; they are checked before anything "
        "is played. May be given several times.",
        False,
        "--plugin",
    ),
]
FORMATS = "yandex-personalized, yandex-relevance, sessions (NDJSON, Parquet), ubi, ga4 or segment."
Format = Annotated[str, option("NAME", FORMATS)]
MaxBad = Annotated[float, option("SHARE", "Stop when more than this share of the lines is bad.", min=0, max=1)]
LENGTH = "10 where a query has such a page, else its most frequent length"
"""What ``--page-length`` is when it is left out."""
AsJson = Annotated[bool, flag("--json", "Print JSON, and nothing else, on stdout.")]

SHARED: dict[str, Any] = {
    "log": Annotated[Path, typer.Argument(metavar="LOG", help="Click log, plain or gzip.")],
    "format": Format,
    "policies": Annotated[
        str | None,
        option("NAMES", "Policies to play, with commas between; see `saferank policies`.", "the five of the paper"),
    ],
    "models": Annotated[str | None, option("NAMES", "Only these click models, with commas between.", "all")],
    "positions": count("K", "How many items a page shows."),
    "rounds": Annotated[int, count("T", "Pages shown in a run, for example 1e5.")],
    "queries": count("N", "The N most frequent queries."),
    "iterations": count("N", "Iterations of EM."),
    "seed": count("N", "The same seed gives the same results."),
    "max_bad": MaxBad,
    "world": Annotated[
        list[str] | None,
        option(
            "PART=VALUE",
            "A part of a world that is not the paper's. drift=step:ROUND:TO, slow:FIRST:LAST:TO, arrivals:EVERY or "
            "departures:EVERY: how attraction changes. delay=PAGES or geometric:MEAN, lost-pages=P, lost-clicks=P: "
            "feedback that is late or lost. layout=2,1,3: the screen is not as the policy assumes. "
            "examination=1,0.9,...: what policies that need it are told. reward=dcg or weights:W1,W2,...: by which "
            "regret is measured. May be given several times.",
            "the paper's",
        ),
    ],
    "plugins": Plugins,
    "jobs": count("N", "Threads; results do not depend on it.", "number of cores"),
    "cluster": option(
        "ADDRESS",
        "Play on this Dask cluster, like tcp://host:8786, instead of on threads here; same results.",
        "this machine",
    ),
    "resume": flag("--resume", "Resume the run in DIR, or start one."),
    "overwrite": flag("--overwrite", "Remove the run that is in DIR and start again."),
}
"""Options by the argument that they are, wherever a function of the library has it."""
