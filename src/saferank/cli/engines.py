"""Who plays: the threads of this machine or a cluster, and how their failures are told."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from saferank.cli.errors import CommandError, InputError

if TYPE_CHECKING:
    from saferank.simulation.engine import Engine


class ClusterFailed(CommandError):  # noqa: N818 (named like what happened)
    """The cluster would not do it any more."""


@contextmanager
def engine_of(jobs: int, cluster: str | None, plugins: Sequence[str] = ()) -> Iterator["Engine"]:
    """The engine that was asked for."""
    from saferank.simulation.engine import Threads

    if cluster is None:
        yield Threads(jobs)
        return
    if plugins:
        raise InputError("--cluster: does not take --plugin, whose code the workers do not have; leave out one of them")
    from saferank.cluster import AddressError, ClusterError, connected

    try:
        with connected(cluster) as engine:
            yield engine
    except AddressError as problem:
        raise InputError(f"--cluster: {problem}") from problem
    except ClusterError as problem:
        raise ClusterFailed(f"--cluster: {problem}") from problem


@contextmanager
def compiling() -> Iterator[None]:
    """Say in a sentence why a plug-in does not compile."""
    from saferank._kernel import CompilationError, why_not_compiled

    try:
        yield
    except CompilationError as problem:
        raise InputError(f"a policy or click model does not compile: {why_not_compiled(problem)}") from problem
