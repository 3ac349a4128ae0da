"""How a kernel is compiled, cached and dispatched.

Only this file, ``_inner_code.py`` (what is private to numba) and ``memory.py`` import numba.

Three things are offered to the rest of the package:

* ``@kernel`` compiles a function on first use, releases the GIL while it runs, and keeps the machine code on disk, with
  all kernels that it calls in one piece; ``@seldom`` does the same for work that is not part of every round.
* ``verb(stub)`` makes a function that dispatches on the *type* of its first argument, in Python and in compiled code
  alike; ``@implements(verb, SomeNamedTuple)`` adds a case. (Passing kernels as arguments would defeat the disk cache,
  because their address becomes part of the type.)
* ``announce_compilation(say)`` calls ``say`` once when something really has to be compiled. Within
  ``nothing_compiled()`` a thread raises instead.

Numba notices an edit of the file in which a cached function stands, but not of the functions it calls: it would go on
running the old code. So the cache folder is named by a digest of all source that a kernel may call: for the policies,
the click models and what they stand on that is the core, for the others the whole package. A kernel that runs a plug-in
from elsewhere gets a folder named by all loaded source that was not installed as well (``specialised``). The package's
own folders never hold code for a plug-in's types: it would be stale after an edit, and unreadable where the plug-in is
not installed.

With ``NUMBA_DISABLE_JIT=1`` every kernel is the plain Python function, steppable in a debugger, with equal results.
"""

import ast
import contextlib
import functools
import hashlib
import os
import re
import shutil
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numpy as np
from numba import config
from numba.core import errors, event, options

from saferank._inner_code import Kernel, VerbType

F = TypeVar("F", bound=Callable[..., Any])

JIT = not getattr(config, "DISABLE_JIT")  # noqa: B009 (numba makes its settings at run time)
PACKAGE = Path(__file__).parent
NO_KERNELS = (
    "cli", "client", "errors.py", "experiments", "forecasting", "precompiling.py", "progress.py", "reporting",
    "reproduction", "service", "simulation/cluster", "store",
)  # fmt: skip
"""Folders and files that no kernel outside of them calls: an edit there leaves the other compiled code valid."""

CORE = (
    "_inner_code.py", "_kernel.py", "click_models", "live/replay.py", "memory.py", "policies", "randomness.py",
    "safety", "statistics", "verbs.py",
)  # fmt: skip
"""Folders and files that import nothing from the rest of the package: their compiled code outlives edits elsewhere."""

SERVED = ("service/knowledge", "store")
"""Folders whose kernels call each other, and those of the core."""

STALE_SECONDS = 30 * 24 * 3600.0


def prepare_thread() -> None:
    """Let interpreted random words wrap around like compiled ones; numpy would warn about each, in every thread."""
    if not JIT:
        np.seterr(over="ignore")


prepare_thread()


def _digest(files: list[Path], part: Callable[[bytes], bytes] = bytes) -> str:
    sha = hashlib.sha256()
    for file in files:
        sha.update(file.name.encode() + b"\0" + part(file.read_bytes()) + b"\0")
    return sha.hexdigest()[:16]


@functools.cache
def package_digest() -> str:
    """A digest of all source that computes: equal digests give equal results."""
    skipped = {PACKAGE / name for name in NO_KERNELS}
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if not skipped & {file, *file.parents}]
    return _digest(files) + _checked()


@functools.cache
def _core_digest() -> str:
    return _digest([file for file in sorted(PACKAGE.rglob("*.py")) if _is_core(file)]) + _checked()


@functools.cache
def _served_digest() -> str:
    return _digest([file for file in sorted(PACKAGE.rglob("*.py")) if _is_in((*CORE, *SERVED), file)]) + _checked()


def _is_core(file: Path) -> bool:
    return _is_in(CORE, file)


def _is_in(names: Sequence[str], file: Path) -> bool:
    return bool({PACKAGE / name for name in names} & {file, *file.parents})


def _checked() -> str:
    return "-checked" if getattr(config, "BOUNDSCHECK", None) else ""  # numba would mix the two kinds of code


def _digest_for(function: Callable[..., Any]) -> str | None:
    """What names the cache of a kernel; None for one from outside the package, which is not kept."""
    file = Path(function.__code__.co_filename)
    if PACKAGE not in file.parents:
        return None
    if _is_in(SERVED, file):
        return _served_digest()
    return _core_digest() if _is_core(file) else package_digest()


def _cache_home() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return Path(chosen or Path.home() / ".cache") / "saferank"


def _forget_stale(home: Path) -> None:
    """Remove compiled code of sources that have not run for a month; another process may be doing the same."""
    for folder in home.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime < time.time() - STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _cache_folder(digest: str) -> Path | None:
    """The folder for compiled code of this digest; None, with a warning, where none can be written."""
    folder = _cache_home() / digest
    try:
        fresh = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if fresh:
            _forget_stale(folder.parent)
    except OSError as problem:
        warnings.warn(
            f"saferank compiles again in every process: its cache cannot be kept in {folder} ({problem}). "
            "Set NUMBA_CACHE_DIR to a writable folder.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return folder


def cache_folder() -> Path | None:
    """Where compiled code of the package is kept; None, with a warning, where none can be written."""
    folder = _cache_folder(package_digest())
    return None if folder is None else folder.parent


def _mark_of(part: str) -> Path | None:
    folder = _cache_folder(package_digest())
    settings: Any = config
    return folder and folder / f"{part} on {settings.CPU_NAME or llvmlite.binding.get_host_cpu_name()}"


def mark_compiled(part: str) -> None:
    """Note in the cache that this part of the package was compiled."""
    if mark := _mark_of(part):
        mark.touch()


def is_compiled(part: str) -> bool:
    """True when this part of the package was marked, for this source and this kind of CPU."""
    mark = _mark_of(part)
    return mark is not None and mark.exists()


_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "forceinline": True,  # a call would pass hundreds of array fields
}
if hasattr(options.DefaultOptions, "_nrt"):
    _OPTIONS["_nrt"] = False  # kernels allocate nothing, so nothing needs counting; counting costs a factor of 9 to 24
else:
    warnings.warn(
        "this numba cannot switch off reference counting: rounds will take 9 to 24 times as long. "
        "saferank was made with the versions in its constraints.txt.",
        RuntimeWarning,
        stacklevel=2,
    )


def _compiled(function: Callable[..., Any], digest: str | None, **changed: bool) -> Callable[..., Any]:
    folder = _cache_folder(digest) if digest else None
    settings: Any = config  # global, and other packages have theirs
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder or "")
    try:
        dispatcher: Any = Kernel(function, {**_OPTIONS, **changed})
        if folder is not None:
            dispatcher.enable_caching()
    finally:
        settings.CACHE_DIR = before
    if digest in {package_digest(), _core_digest(), _served_digest()}:
        _keep_plugins_out(dispatcher._cache)
    return cast(Callable[..., Any], dispatcher)


def is_foreign(kind: type) -> bool:
    """True when a class was defined outside the package: in a plug-in or a notebook."""
    return kind.__module__.partition(".")[0] != __package__


def mentions_foreign(argument: Any) -> bool:
    """True when the type of an argument is, or contains, a NamedTuple from outside the package."""
    kind = getattr(argument, "instance_class", None)
    return (kind is not None and is_foreign(kind)) or any(map(mentions_foreign, getattr(argument, "types", ())))


def _keep_plugins_out(cache: Any) -> None:
    """Save nothing that was compiled for a plug-in's types."""
    save = cache.save_overload

    def save_own(signature: Any, result: Any) -> None:
        if not any(map(mentions_foreign, result.signature.args)):
            save(signature, result)

    cache.save_overload = save_own


def kernel(function: F) -> F:
    """Compile ``function`` on first use (interpreted when numba is disabled)."""
    return _kernel_of(function)


def seldom(function: F) -> F:
    """Compile ``function`` like a kernel, but call it instead of copying it into every place that uses it.

    For work that most rounds do not need: the call costs more, and the code of a loop stays small. A loop into which
    everything is copied takes minutes to compile.
    """
    return _kernel_of(function, forceinline=False)


def _kernel_of(function: F, **changed: bool) -> F:
    if not JIT or hasattr(function, "py_func"):
        return function
    return cast(F, _compiled(function, _digest_for(function), **changed))


_CASES: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}
_DEFAULTS: dict[Callable[..., Any], Callable[..., Any] | None] = {}


def verb(stub: F, *, default: bool = False) -> F:
    """Make a function that runs the implementation for the type of its first argument.

    The stub states the signature and the meaning; its body is run only as the ``default`` of other types.
    """
    cases: dict[type, Callable[..., Any]] = {}
    fallback = kernel(stub) if default else None

    @functools.wraps(stub)
    def dispatch(*arguments: Any) -> Any:
        case = cases.get(type(arguments[0]), fallback)
        if case is None:
            raise TypeError(f"{stub.__name__}() is not implemented for {type(arguments[0]).__name__}")
        return case(*arguments)

    _CASES[dispatch], _DEFAULTS[dispatch] = cases, fallback
    if JIT:
        dispatch._numba_type_ = VerbType(stub.__qualname__, lambda kind: cases.get(kind, fallback))  # type: ignore[attr-defined]

    return cast(F, dispatch)


def implements(of: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """Decorate the implementation of verb ``of`` for first arguments of type ``kind``."""

    def register(function: F) -> F:
        compiled = kernel(function)
        _CASES[of][kind] = compiled
        return compiled

    return register


def implemented(of: Callable[..., Any], kind: type) -> Callable[..., Any] | None:
    """The implementation of verb ``of`` for ``kind``, or None."""
    return _CASES[of].get(kind)


def is_verb(function: Any) -> bool:
    """True for a function that dispatches on the type of its first argument."""
    return function in _CASES


def implementation(of: Callable[..., Any], kind: type) -> Callable[..., Any] | None:
    """What verb ``of`` runs for ``kind``: its implementation, else the default of the verb, if it has one."""
    return _CASES[of].get(kind, _DEFAULTS[of])


def _files_of_users(packages: set[str]) -> list[Path]:
    """The source of every loaded module of these packages, and of all that were not installed.

    So of a plug-in, and of whatever it imports from beside it.
    """
    installed = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
    theirs = (f for name, f in files.items() if not f.startswith(installed) or name.partition(".")[0] in packages)
    own = {Path(file) for file in theirs if file.endswith(".py")}
    return sorted(file for file in own if PACKAGE not in file.parents and file.exists())


def seen_by_kernels(source: bytes) -> bytes:
    """What compiled code may depend on in a file of a user: not comments, and not how a policy is started.

    A private function that is named nowhere but in a call of ``register`` is called by Python alone, so an edit of a
    hyper-parameter in it leaves the compiled code valid; types that it changes are noticed by the compiler.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("register")]
    values = [value for call in calls for value in (*call.args, *(each.value for each in call.keywords))]
    given = [value.id for value in values if isinstance(value, ast.Name)]
    for node in tree.body:
        plain = isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.decorator_list
        if isinstance(node, ast.FunctionDef) and plain and 0 < names.count(node.name) == given.count(node.name):
            node.body = [ast.Pass()]
    return ast.dump(tree).encode()


@functools.cache
def _specialised(function: Callable[..., Any], kinds: tuple[type, ...]) -> Callable[..., Any]:
    foreign = [kind for kind in kinds if is_foreign(kind)]
    if not foreign or not JIT:
        return function
    known = all(getattr(sys.modules.get(kind.__module__), "__file__", None) for kind in foreign)
    kept = known and all(kind.__module__ != "__main__" for kind in foreign)
    files = _files_of_users({kind.__module__.partition(".")[0] for kind in foreign})
    digest = package_digest() + _digest(files, seen_by_kernels) if kept else None
    return _compiled(function.py_func, digest)  # type: ignore[attr-defined]


def specialised(function: F, *kinds: type) -> F:
    """``function`` itself, or its twin with a cache of its own when some of ``kinds`` come from outside the package."""
    return cast(F, _specialised(function, kinds))


CompilationError = errors.NumbaError
"""A kernel that does not compile."""


_CAUSES = (
    (r"Untyped global name '(\w+)'.*<class 'function'>", r"\1() is a plain Python function. Helpers are decorated with "
     "@kernel of saferank.verbs"),
    (r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", r"\2.\1 is not known to compiled code"),
    (r"Cannot modify readonly array", "it writes a global array. Give the evidence or the plan an array for it: "
     "nothing may be remembered outside of them"),
)  # fmt: skip
"""What numba says about frequent mistakes, and what to do about them."""


def why_not_compiled(problem: Exception) -> str:
    """A compilation error in a sentence or two, with file and line, for the author of a plug-in."""
    text = re.sub(r"\x1b\[\d*m", "", str(problem))
    found = re.findall(r'(?:File "|at )([^"\n]+?\.py)"?,? \(?(?:line )?(\d+)', text)
    files = [(Path(name).resolve(), line) for name, line in found]
    theirs = [f" ({file}:{line})" for file, line in files if PACKAGE not in file.parents and "numba" not in file.parts]
    where = theirs[-1] if theirs else ""
    for said, advice in _CAUSES:
        if match := re.search(said, text):
            return f"{match.expand(advice)}{where}."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if "No implementation" in line or "NRT required" in line), lines[-1])
    return (
        f"{reason}{where}. Kernels make no new arrays: no np.zeros, no a + b, no a[:] = b between arrays; write loops "
        "over arrays of evidence and plan. With NUMBA_DISABLE_JIT=1 the same code runs in a debugger."
    )


class _FirstCompilation(event.Listener):
    def __init__(self, say: Callable[[], None]) -> None:
        self.say: Callable[[], None] | None = say

    def on_start(self, event: object) -> None:
        if self.say:
            say, self.say = self.say, None
            say()

    def on_end(self, event: object) -> None:
        pass


def announce_compilation(say: Callable[[], None]) -> None:
    """Call ``say`` once, when the first kernel is compiled because the cache does not hold it."""
    listen: Any = event.register
    listen("numba:compile", _FirstCompilation(say))


class NotCompiledError(RuntimeError):
    """A kernel met types for which nothing was compiled in time."""


class _Refusal(event.Listener):
    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def on_start(self, event: Any) -> None:
        if threading.get_ident() == self._thread:
            name, types = event.data["dispatcher"].py_func.__name__, str(event.data["args"])[:500]
            raise NotCompiledError(f"{name}() was not compiled at the start for {types}; while serving nothing is")

    def on_end(self, event: object) -> None:
        pass


_refusals: list[_Refusal] = []


@contextlib.contextmanager
def nothing_compiled() -> Iterator[None]:
    """Inside, this thread raises NotCompiledError where it would compile. Code is loaded, and other threads compile."""
    listener = _Refusal()
    _refusals.append(listener)
    install: Any = event.install_listener
    try:
        with install("numba:compile", listener):
            yield
    finally:
        _refusals.remove(listener)


def is_compiling_refused() -> bool:
    """True while some thread must not compile: what it may need is prepared by others."""
    return bool(_refusals)
