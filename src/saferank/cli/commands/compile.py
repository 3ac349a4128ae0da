"""``saferank compile``: everything that takes long at a first start, done before."""

import time
from typing import Annotated

import typer

from saferank.cli.terminal.options import names_in


def command(
    purpose: Annotated[
        str, typer.Option("--for", metavar="PURPOSE", help="service, paper (what reproduce plays) or all.")
    ] = "service",
    policies: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Only these policies, with commas between.", show_default="those it needs"),
    ] = None,
) -> None:
    """Compile kernels ahead of their first use, on all cores, and keep them on disk.

    For container images, CI and servers that must start at once. Code that is there already is loaded and checked.
    The code is for this CPU and this version of the package; NUMBA_CACHE_DIR says where it is kept.

    **Example**: `saferank compile --for paper`

    **What comes out**: one line with what was compiled, how long it took and where it is kept.
    """
    from saferank._kernel import cache_folder
    from saferank.experiments.engines import cores
    from saferank.precompiling import jobs_for
    from saferank.progress import Shown
    from saferank.simulation.compiling import compile_ahead

    started = time.monotonic()
    jobs = jobs_for(purpose, None if policies is None else names_in(policies, "--policies"))
    compile_ahead(jobs, Shown(), cores())
    typer.echo(f"compiled for {purpose} in {time.monotonic() - started:.0f} s: {len(jobs)} parts in {cache_folder()}")
