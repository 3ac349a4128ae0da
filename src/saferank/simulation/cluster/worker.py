"""What a worker of the cluster runs: a cell, made there from its parts, and some of its repetitions."""

import threading
from collections.abc import Sequence

from saferank._kernel import package_digest, prepare_thread
from saferank._version import __version__
from saferank.simulation.cluster.shipping import Portable, Source, load_sources, unpacked
from saferank.simulation.engine import Played, Task, play_task
from saferank.simulation.experiment import Plan, cells_of, compile_loops

_compiling = threading.Lock()
_compiled: set[tuple[str, str, int, tuple[str, ...]]] = set()


def identity() -> tuple[str, str]:
    """The version of the package here, and a digest of its source: equal ones give equal results."""
    return __version__, package_digest()


class OtherVersion(RuntimeError):  # noqa: N818 (the name of what is wrong)
    """A worker that joined late has another saferank than the experiment."""


def play(users: Portable, plan: Plan, task: Task, wanted: tuple[str, str], sources: Sequence[Source] = ()) -> Played:
    """Play a task of the only policy of ``plan``, unless this is another saferank than ``wanted``.

    ``sources`` are the plug-ins that it needs, ``users`` the instance.
    """
    if identity() != wanted:
        raise OtherVersion(f"a worker runs {described(identity())}")
    prepare_thread()
    with _compiling:  # once per worker: its threads would do it at the same time
        load_sources(sources)
        instance = unpacked(users)
        (cell,) = cells_of([instance], plan)
        digests = tuple(source.digest for source in sources)
        key = (cell.kind.name, instance.model_name, len(instance.items), digests)
        if key not in _compiled:
            compile_loops([cell])
            _compiled.add(key)
    return play_task(cell, task)


def described(version: tuple[str, str]) -> str:
    """A version for a message."""
    return f"saferank {version[0]} (source {version[1][:8]})"
