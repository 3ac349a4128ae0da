"""``saferank export``: the log of a store, in the forms that other programs read."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from saferank.cli.terminal.errors import InputError

if TYPE_CHECKING:
    from saferank.store.contract import Store


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
    from saferank.errors import writing

    check_format(form)
    if out is None:
        _write(store, form, tenant, sys.stdout)
        return
    with writing(f"--out {out}"), out.open("w", encoding="utf-8") as file:
        _write(store, form, tenant, file)


def check_format(form: str) -> None:
    """InputError for a format that does not exist."""
    from typing import get_args

    from saferank.service.wire.exports import ExportFormat

    if form not in get_args(ExportFormat):
        raise InputError(f"--format: unknown format {form!r}; known ones: {', '.join(get_args(ExportFormat))}")


def _write(store: str, form: str, tenant: str | None, file: TextIO) -> None:
    from saferank.store.contract import StoreError, StoreUnavailableError
    from saferank.store.opening import open_store

    try:
        asyncio.run(_copy(open_store(store, readonly=True), form, tenant, file))
    except (StoreError, StoreUnavailableError) as problem:
        raise InputError(str(problem)) from problem


async def _copy(store: "Store", form: str, tenant: str | None, file: TextIO) -> None:
    import time

    from saferank.service.clock import moment
    from saferank.service.queries.offline_export import stored_lines
    from saferank.service.wire.exports import Converter

    converter = Converter(cast(Any, form), moment(round(1000 * time.time())))
    async for facts in stored_lines(store, tenant):
        file.writelines(f"{line}\n" for line in converter.take(facts))
