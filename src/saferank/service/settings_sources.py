"""Where settings come from: flags, then the environment, then a TOML file, then defaults; the first that has one wins.

What is not known is an error that names the nearest known name: a setting that is spelt wrong must not be ignored.
"""

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from saferank.service.settings import Settings, SettingsError, masked, settings_of

PREFIX = "SAFERANK_SERVE_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
SECRET = ("tenants",)
_LISTS = ("cors_origins", "operator_keys")


class EffectiveSettings(NamedTuple):
    """The settings, and for every one where its value came from."""

    settings: Settings
    sources: dict[str, str]


def effective_settings(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None,
    demo: Mapping[str, Any] | None = None,
) -> EffectiveSettings:
    """The settings that hold; SettingsError for what cannot be used. ``demo`` are other defaults, for a demo."""
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(environment[CONFIG_VARIABLE])
    given: dict[str, tuple[Any, str]] = {name: (value, "default of the demo") for name, value in (demo or {}).items()}
    if file is not None:
        given |= {name: (value, f"file {file}") for name, value in _from_file(file).items()}
    given |= _from_environment(environment)
    given |= {name: (value, "flag") for name, value in flags.items() if value is not None}
    sources = {name: given[name][1] if name in given else "default" for name in Settings.__struct_fields__}
    settings = settings_of({name: value for name, (value, _) in given.items()}, sources)
    return EffectiveSettings(settings, sources)


def from_texts(assignments: Iterable[str]) -> dict[str, Any]:
    """Settings from texts like ``port=8080``."""
    given = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise SettingsError(f"--set {assignment}: expected NAME=VALUE")
        _check_known(name, Settings.__struct_fields__, "--set: unknown setting")
        given[name] = _read(name, text, f"--set {name}")
    return given


def shown(effective: EffectiveSettings) -> list[tuple[str, str, str]]:
    """Name, value and source of every setting, secrets masked."""
    rows = []
    for name, source in effective.sources.items():
        value = getattr(effective.settings, name)
        rows.append((name, _shown(name, value), source))
    return rows


def _from_file(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as problem:
        raise SettingsError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{file}: is not TOML: {problem}") from problem
    for name in content:
        _check_known(name, Settings.__struct_fields__, f"{file}: unknown setting")
    return content


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    known = {PREFIX + name.upper(): name for name in Settings.__struct_fields__}
    given = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE:
            continue
        _check_known(variable, [*known, CONFIG_VARIABLE], "unknown environment variable")
        name = known[variable]
        given[name] = (_read(name, text, variable), f"environment {variable}")
    return given


def _check_known(name: str, known: Iterable[str], what: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    raise SettingsError(f"{what} {name!r}; the nearest known is {near[0]}")


def _read(name: str, text: str, variable: str) -> Any:
    if name in _LISTS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if name not in SECRET:
        return text
    try:
        return json.loads(text)
    except ValueError as problem:
        raise SettingsError(f"{variable}: expected a JSON object, {problem}") from problem


def _shown(name: str, value: Any) -> str:
    if name == "operator_keys":
        return f"{len(value)} (masked)" if value else "none"
    return _masked(value) if name in SECRET else masked(_plain(value))


def _masked(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} (masked)" for name in value) or "none"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
