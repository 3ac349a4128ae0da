"""Where output goes: results to stdout, everything about the way there to stderr."""

import functools

from rich.console import Console

STDOUT = Console()
STDERR = Console(stderr=True)


def _say_compiling() -> None:
    STDERR.print(
        "compiling the kernels for this machine, once; the next start takes them from the cache", soft_wrap=True
    )


@functools.cache  # one listener in a process, however many commands it runs
def announce() -> None:
    """Say so when something has to be compiled, because that takes seconds in which nothing else happens."""
    from saferank._kernel import announce_compilation

    announce_compilation(_say_compiling)
