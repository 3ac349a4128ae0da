"""``saferank export``: the log of a store, in the forms that other programs read."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder of a service's store, or postgresql://...")],
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="events (everything), sessions, or ubi (bulk NDJSON).")
    ] = "events",
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this tenant.", show_default="all tenants")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write.", show_default="standard output")
    ] = None,
) -> None:
    """Write a service's log as lines of JSON.

    The service may be running. sessions and ubi are what `saferank fit`, `saferank logs` and other programs read: a
    page each, with its clicks, once its window is over.

    **Example**: `saferank export saferank-store --format sessions --out pages.ndjson`, then
    `saferank fit pages.ndjson --format sessions --out mine.json`

    **What comes out**: one JSON object a line.
    """
    from saferank.service.queries.offline_export import export

    export(store, form, tenant, sys.stdout.buffer if out is None else out)
