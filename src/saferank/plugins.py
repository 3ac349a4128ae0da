"""Plug-ins: Python code of a user that registers policies or click models when it is imported, and where it stands.

A file is imported under its stem, and the module stays in ``sys.modules``: compiled code that contains a plug-in is
kept in a cache named by the source that ``sys.modules`` leads to.
"""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from saferank._kernel import PACKAGE, is_foreign
from saferank.errors import ArgumentError, UsageError

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def load_plugins(names: Iterable[str]) -> list[str]:
    """Import every plug-in, or say which one cannot be imported and why; returns the names of their modules."""
    modules = []
    for name in names:
        try:
            modules.append(_load(name))
        except ArgumentError:
            raise
        except (Exception, SystemExit) as problem:  # a plug-in may fail in any way
            raise ArgumentError("plugin", f"{name}: cannot be imported: {_reason(problem)}") from problem
    return modules


def _reason(problem: BaseException) -> str:
    reason = str(problem) if isinstance(problem, UsageError) else f"{type(problem).__name__}: {problem}"
    place = None if isinstance(problem, SyntaxError) else place_of_problem(problem)  # a syntax error names its line
    return reason if place is None else f"{reason} (line {place.rpartition(':')[2]} of {place.rpartition(':')[0]})"


def _load(name: str) -> str:
    if name.endswith(".py") or "/" in name:
        _import_file(Path(name))
        return Path(name).stem
    return importlib.import_module(name).__name__


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise ArgumentError("plugin", f"{path}: there is no such file")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ArgumentError("plugin", f"{path}: a plug-in is a file called name.py, its name a Python identifier")
    known = sys.modules.get(path.stem)
    if known is None:
        execute(path)
    elif not _is_from(known, path):
        raise ArgumentError("plugin", f"{path}: a module called {path.stem} is loaded already; rename the file")


def _is_from(module: object, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def execute(path: Path) -> None:
    """Import a file under its stem."""
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise ImportError(f"Python does not know how to load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]  # half a module must not be found by the next attempt
        raise


def digest_of(module: str) -> str | None:
    """A digest of the source of a loaded module; None for one without a file, like a notebook."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__" or not Path(file).is_file():
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


def home_of(part: Any) -> Any:
    """The class or function that stands in a file: a partial function stands where its function does."""
    return home_of(part.func) if isinstance(part, functools.partial) else part


def modules_of(parts: Iterable[Any]) -> list[str]:
    """The modules of the plug-ins from which classes and functions come, each after those of users that it imports."""
    found: dict[str, None] = {}
    for part in map(home_of, parts):
        if is_foreign(part):
            _collect(part.__module__, found, ())
    return list(found)


def _collect(module: str, found: dict[str, None], importers: tuple[str, ...]) -> None:
    if module in found or module in importers:  # modules may import one another
        return
    for needed in _imported_by(module):
        _collect(needed, found, (*importers, module))
    found[module] = None


def _imported_by(module: str) -> list[str]:
    """The modules of users from which a module of a user has its names; a package of modules is not looked into."""
    names = []
    if "." not in module and is_of_user(str(getattr(sys.modules.get(module), "__file__", _INSTALLED[0]))):
        for value in list(vars(sys.modules[module]).values()):
            plain = getattr(value, "py_func", value)
            name = plain.__name__ if isinstance(plain, ModuleType) else getattr(plain, "__module__", None)
            file = getattr(sys.modules.get(str(name)), "__file__", None)
            if file is not None and is_of_user(file):
                names.append(str(name))
    return names


def digests_of(parts: Iterable[Any]) -> dict[str, str | None]:
    """The digests of the plug-ins of classes and functions, by module; the package's own have none."""
    return {module: digest_of(module) for module in modules_of(parts)}


def place_of(part: Any) -> str | None:
    """File and line of a function or class; None when it has no source."""
    part = home_of(getattr(part, "py_func", part))
    if hasattr(part, "__code__"):
        return f"{part.__code__.co_filename}:{part.__code__.co_firstlineno}"
    try:
        return f"{inspect.getsourcefile(part)}:{inspect.getsourcelines(part)[1]}"
    except (OSError, TypeError):  # made by a call, or typed into an interpreter
        return None


def place_of_problem(problem: BaseException) -> str | None:
    """File and line of the innermost frame of an exception that is neither ours nor of an installed package."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{problem.filename}:{problem.lineno}"
    frames = traceback.extract_tb(problem.__traceback__)
    theirs = [frame for frame in frames if is_of_user(frame.filename)]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else None


def is_of_user(file: str) -> bool:
    """True for a file that belongs neither to this package nor to an installed one."""
    return not file.startswith((*_INSTALLED, "<frozen")) and PACKAGE not in Path(file).parents
