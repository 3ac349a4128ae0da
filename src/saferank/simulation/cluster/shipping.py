"""Plug-ins on a cluster: the source of their files travels with the tasks, by its digest.

A worker loads a source once. A plug-in that is one file is sent, with the files beside it that it imports; one that is
a module of a package is not: the workers must have the same package, and are refused if they do not.
"""

import importlib
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from saferank._kernel import is_foreign
from saferank.click_models import CLICK_MODELS
from saferank.instances import Instance, entry_of, parse_instances
from saferank.plugins import digest_of, execute, home_of, is_of_user, modules_of
from saferank.policies import POLICIES


class NotInAFileError(ValueError):
    """A plug-in that cannot be sent, because it stands in a notebook or in the script that runs."""


class RefusedPlugin(RuntimeError):  # noqa: N818 (the name of what is wrong)
    """A worker that cannot have the plug-in, in a sentence."""


class Source(NamedTuple):
    """A module of a plug-in."""

    module: str
    digest: str
    text: str | None  # None: it must be installed where it is played


Portable = Instance | tuple[dict[str, object], tuple[float, ...] | None]
"""An instance as it travels: with a click model of a plug-in as plain data, since its class is not there yet."""


def portable(instance: Instance) -> Portable:
    """The instance as it can be sent."""
    return (entry_of(instance), instance.examination) if is_foreign(type(instance.model)) else instance


def unpacked(users: Portable) -> Instance:
    """The instance that was sent."""
    if isinstance(users, Instance):
        return users
    (instance,) = parse_instances({"instances": [users[0]]}, "the cluster")
    return replace(instance, examination=users[1])


def sources_of(parts: Iterable[Any]) -> tuple[Source, ...]:
    """The sources of the plug-ins of these classes and functions, each after those that it imports."""
    listed = list(parts)
    for part in map(home_of, listed):
        if is_foreign(part) and digest_of(part.__module__) is None:
            raise NotInAFileError(
                f"cannot play {part.__name__}, which is defined in a notebook or script: write it to a file of its "
                "own, and import that or give it as a plug-in"
            )
    return tuple(map(_source_of, modules_of(listed)))


def _source_of(module: str) -> Source:
    file = str(sys.modules[module].__file__)
    alone = "." not in module and is_of_user(file)
    return Source(module, str(digest_of(module)), Path(file).read_text(encoding="utf-8") if alone else None)


_folders: list[tempfile.TemporaryDirectory[str]] = []
_shipped: set[str] = set()


def load_sources(sources: Sequence[Source]) -> None:
    """Have every source loaded here, or raise ``RefusedPlugin``. Not to be called by two threads at once."""
    for source in sources:
        if source.module not in sys.modules and source.text is None:
            _import_installed(source)
        if digest_of(source.module) != source.digest:
            _execute(source)


def _import_installed(source: Source) -> None:
    try:
        importlib.import_module(source.module)
    except ImportError as problem:
        raise RefusedPlugin(
            f"a worker has no module {source.module}; install it there, or give the plug-in as one file"
        ) from problem


def _execute(source: Source) -> None:
    """Write the source to a file of its name and import it, in place of an older version that was sent before."""
    if source.text is None or (source.module in sys.modules and source.module not in _shipped):
        raise RefusedPlugin(f"a worker has another {source.module} than the experiment; install the same there")
    _forget(source.module)
    _folders.append(tempfile.TemporaryDirectory(prefix="saferank-plugin-"))
    file = Path(_folders[-1].name) / f"{source.module}.py"
    file.write_text(source.text, encoding="utf-8")
    execute(file)
    _shipped.add(source.module)


def _forget(module: str) -> None:
    sys.modules.pop(module, None)
    for name in [name for name, kind in POLICIES.items() if home_of(kind.start).__module__ == module]:
        del POLICIES[name]
    for name in [name for name, model in CLICK_MODELS.items() if model.__module__ == module]:
        del CLICK_MODELS[name]
