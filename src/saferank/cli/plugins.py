"""Plug-ins: Python code of a user that registers policies or click models when it is imported.

A file is imported under its stem, and the module stays in ``sys.modules``: compiled code that contains a plug-in is
kept in a cache named by the source that ``sys.modules`` leads to.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from saferank.cli.errors import InputError


def load_plugins(names: Iterable[str]) -> None:
    """Import every plug-in, or say which one cannot be imported and why."""
    for name in names:
        try:
            _load(name)
        except InputError:
            raise
        except (Exception, SystemExit) as problem:  # a plug-in may fail in any way
            reason = f"{type(problem).__name__}: {problem}"
            raise InputError(f"--plugin {name}: cannot be imported: {reason}") from problem


def _load(name: str) -> None:
    if name.endswith(".py") or "/" in name:
        _import_file(Path(name))
    else:
        importlib.import_module(name)


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"--plugin {path}: there is no such file")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise InputError(f"--plugin {path}: a plug-in is a file called name.py, its name a Python identifier")
    known = sys.modules.get(path.stem)
    if known is None:
        _execute(path)
    elif not _is_from(known, path):
        raise InputError(f"--plugin {path}: a module called {path.stem} is loaded already; rename the file")


def _is_from(module: object, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def _execute(path: Path) -> None:
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
