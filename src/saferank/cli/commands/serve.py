"""``saferank serve``, the live service, and ``saferank keys``, for those who call it."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from saferank.cli.terminal.errors import CommandError, InputError
from saferank.cli.terminal.help import PlainCommand
from saferank.cli.terminal.options import Plugins, flag, option

if TYPE_CHECKING:
    from saferank.service.settings import EffectiveSettings


def command(
    config: Annotated[Path | None, option("FILE", "Settings in TOML; see docs/engineers/service.md.", False)] = None,
    host: Annotated[str | None, option("ADDRESS", "Address to listen on.", "127.0.0.1")] = None,
    port: Annotated[int | None, option("PORT", "Port; 0 takes a free one and prints it.", "8080")] = None,
    store: Annotated[
        str | None, option("STORE", "Folder of the store, or postgresql://... for several servers.", "saferank-store")
    ] = None,
    policy: Annotated[str | None, option("NAME", "Policy of new contexts.", "safe-draw")] = None,
    rule: Annotated[str | None, option("RULE", "Decision rule of new contexts.", "anytime:1e-5")] = None,
    mode: Annotated[str | None, option("MODE", "live, shadow or off.", "live")] = None,
    window_seconds: Annotated[float | None, option("SECONDS", "How long clicks are collected.", "1800")] = None,
    setting: Annotated[
        list[str] | None, option("NAME=VALUE", "Any other setting; may be given several times.", True, "--set")
    ] = None,
    demo: Annotated[
        bool,
        flag("--demo", "Simulated visitors click; open the dashboard and watch. Without --store, nothing is kept."),
    ] = False,
    show_settings: Annotated[
        bool, flag("--show-settings", "Print every setting and where it comes from, and exit.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Serve rankings over HTTP and learn from clicks, durably.

    Settings come from flags, then environment variables (SAFERANK_SERVE_PORT and so on), then the file, then
    defaults; the first that has one wins. It stops on Ctrl-C or SIGTERM; whatever it acknowledged is on disk.

    **Example**: `saferank serve --store rankings --port 8080`

    **What comes out**: one line with the address of the service and of its dashboard on stdout; logs in JSON on
    stderr.
    """
    from saferank.checks.plugin import load_checked_plugins

    load_checked_plugins(plugin or (), compiled=True)
    flags: dict[str, Any] = {
        "host": host, "port": port, "store": store, "policy": policy, "rule": rule, "mode": mode,
        "window_seconds": window_seconds,
    }  # fmt: skip
    effective = _settings(flags, setting or [], config, demo)
    if show_settings:
        _show(effective)
    else:
        _serve(effective, demo)


def _settings(flags: dict[str, Any], others: list[str], config: Path | None, demo: bool) -> "EffectiveSettings":
    try:
        from saferank.service.settings import SettingsError, effective_settings, from_texts
    except ImportError as problem:
        raise CommandError(f"serve needs more packages ({problem}): pip install 'saferank[service]'") from problem
    given = {name: value for name, value in flags.items() if value is not None}
    defaults: dict[str, Any] = {}
    if demo:
        from saferank.service.demo import DEMO_SETTINGS

        defaults = DEMO_SETTINGS
    try:
        return effective_settings({**from_texts(others), **given}, os.environ, config, defaults)
    except SettingsError as problem:
        raise InputError(str(problem)) from problem


def _show(effective: "EffectiveSettings") -> None:
    from saferank.service.settings import shown

    rows = shown(effective)
    width = max(len(name) for name, _, _ in rows)
    for name, value, source in rows:
        typer.echo(f"{name:<{width}} = {value}  ({source})")


def _serve(effective: "EffectiveSettings", demo: bool) -> None:
    from saferank.cli.serving import serve, serve_demo

    if not demo:
        serve(effective.settings)
    elif effective.settings.has_keys:
        raise InputError("--demo: its visitors have no keys; leave [tenants] out")
    else:
        serve_demo(effective.settings, throw_away=effective.sources["store"] == "default")


keys = typer.Typer(help="Keys for callers of the service.", rich_markup_mode="markdown", no_args_is_help=False)


@keys.callback()
def _keys() -> None:
    """Keys for callers of the service."""


@keys.command("new", cls=PlainCommand)
def new(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant that the keys are for.")],
) -> None:
    """Make a key of each role for a tenant, and print the settings that let them in.

    rank is for servers (pages and their clicks), feedback for web pages (clicks by token), read for dashboards and
    metrics, operate for the person who pulls switches, rolls back and resets. Only their hashes go into the settings,
    so the keys themselves cannot be shown again.

    **Example**: `saferank keys new shop`

    **What comes out**: the four keys as comments, and below them a section for the settings file.
    """
    from saferank.service.keys import Role, hashed, new_key
    from saferank.service.settings import check_tenant

    try:
        check_tenant(tenant)
    except ValueError as problem:
        raise InputError(f"TENANT: {problem}") from problem
    made = {role: new_key(role) for role in get_args(Role)}
    for role, key in made.items():
        typer.echo(f"# {role + ' key:':<14}{key}")
    typer.echo("# The lines above are secrets: store them elsewhere. The lines below go into the settings file.")
    typer.echo(f"[tenants.{json.dumps(tenant)}]")
    for role, key in made.items():
        typer.echo(f'{role} = ["{hashed(key)}"]')


@keys.command("rotate", cls=PlainCommand)
def rotate(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="Folder of a stopped service's store, or postgresql://...")
    ],
) -> None:
    """Make a new key that signs tokens, while servers on PostgreSQL go on serving.

    Every server accepts the new key before any signs with it, so no report is refused. The last five keys are
    accepted; they never leave the store.

    **Example**: `saferank keys rotate postgresql://db/rankings`

    **What comes out**: the name of the key that signs from now on.
    """
    import asyncio

    from saferank.service.identifiers import rotate
    from saferank.store.contract import StoreError, StoreUnavailableError
    from saferank.store.opening import check_exists, open_store

    try:
        asyncio.run(check_exists(store))
        name = asyncio.run(rotate(open_store(store)))
    except (StoreError, StoreUnavailableError) as problem:
        raise InputError(str(problem)) from problem
    typer.echo(f"tokens are signed with {name} from now on")


@keys.command("operator", cls=PlainCommand)
def operator() -> None:
    """Make an operator key: it switches off all tenants of a service at once, and can do nothing else.

    Only its hash goes into the settings, so the key itself cannot be shown again.

    **Example**: `saferank keys operator`

    **What comes out**: the key as a comment, and below it a line for the settings file.
    """
    from saferank.service.keys import hashed, new_key

    key = new_key("operator")
    typer.echo(f"# operator key, for the person who runs the service:   {key}")
    typer.echo("# The line above is a secret: store it elsewhere. The line below begins the settings file.")
    typer.echo(f'operator_keys = ["{hashed(key)}"]')
