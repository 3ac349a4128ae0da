"""``saferank keys``: make keys for callers of the service."""

from typing import Annotated

import typer

from saferank.cli.terminal.help import PlainCommand

app = typer.Typer(help="Keys for callers of the service.", rich_markup_mode="markdown", no_args_is_help=False)


@app.callback()
def _keys() -> None:
    """Keys for callers of the service."""


@app.command("new", cls=PlainCommand)
def new(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant that the keys are for.")],
) -> None:
    """Make a rank key and a feedback key for a tenant, and print the settings that let them in.

    Give the rank key to servers and the feedback key to web pages; only their hashes go into the settings, so the keys
    themselves cannot be shown again.

    **Example**: `saferank keys new shop`

    **What comes out**: the two keys as comments, and below them a section for the settings file.
    """
    import json

    from saferank.cli.terminal.errors import InputError
    from saferank.service.keys import hashed, new_key
    from saferank.service.settings import check_tenant

    try:
        check_tenant(tenant)
    except ValueError as problem:
        raise InputError(f"TENANT: {problem}") from problem
    rank, feedback = new_key("rank"), new_key("feedback")
    typer.echo(f"# rank key, for servers:         {rank}")
    typer.echo(f"# feedback key, for web pages:   {feedback}")
    typer.echo("# The lines above are secrets: store them elsewhere. The lines below go into the settings file.")
    typer.echo(f"[tenants.{json.dumps(tenant)}]")
    typer.echo(f'rank = ["{hashed(rank)}"]')
    typer.echo(f'feedback = ["{hashed(feedback)}"]')


@app.command("operator", cls=PlainCommand)
def operator() -> None:
    """Make an operator key: it switches off all tenants of a service at once, and can do nothing else.

    Only its hash goes into the settings, so the key itself cannot be shown again.

    **Example**: `saferank keys operator`

    **What comes out**: the key as a comment, and below it a line for the settings file.
    """
    from saferank.service.keys import hashed, new_key

    key = new_key("operator")
    typer.echo(f"# operator key, for whoever runs the service:   {key}")
    typer.echo("# The line above is a secret: store it elsewhere. The line below begins the settings file.")
    typer.echo(f'operator_keys = ["{hashed(key)}"]')
