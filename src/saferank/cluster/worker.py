"""What a worker of the cluster runs: a cell, made there from its parts, and some of its repetitions."""

import threading

from saferank._kernel import package_digest, prepare_thread
from saferank._version import __version__
from saferank.instances import Instance
from saferank.simulation.engine import Played, Task, play_task
from saferank.simulation.experiment import Plan, cells_of, compile_loops

_compiling = threading.Lock()
_compiled: set[tuple[str, str, int]] = set()


def identity() -> tuple[str, str]:
    """The version of the package here, and a digest of its source: equal ones give equal results."""
    return __version__, package_digest()


class OtherVersion(RuntimeError):  # noqa: N818 (the name of what is wrong)
    """A worker that joined late has another saferank than the experiment."""


def play(instance: Instance, plan: Plan, task: Task, wanted: tuple[str, str]) -> Played:
    """Play a task of the only policy of ``plan`` on ``instance``, unless this is another saferank than ``wanted``."""
    if identity() != wanted:
        raise OtherVersion(f"a worker runs {told(identity())}")
    prepare_thread()
    (cell,) = cells_of([instance], plan)
    with _compiling:  # once per worker: its threads would do it at the same time
        key = (plan.policies[0], instance.model_name, len(instance.items))
        if key not in _compiled:
            compile_loops([cell])
            _compiled.add(key)
    return play_task(cell, task)


def told(who: tuple[str, str]) -> str:
    """A version for a message."""
    return f"saferank {who[0]} (source {who[1][:8]})"
