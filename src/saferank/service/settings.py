"""Every setting of the service: its name, its default, what it does and what it may be.

``docs/engineers/service.md`` lists them all; a test compares.
"""

import difflib
import functools
import importlib.util
import ipaddress
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from saferank.service.wire.calls import (
    LONGEST_ID,
    MOST_ITEMS,
    Days,
    GuardrailDrop,
    HoldoutShare,
    Id,
    MisuseError,
    Mode,
    Trust,
    about,
    explained,
)

if TYPE_CHECKING:
    from saferank.policies import PolicyKind

HashedKey = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
HashedKeys = tuple[HashedKey, ...]
Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0, le=10**9)]


class SettingsError(ValueError):
    """Settings that cannot be used; the message names the setting and says what would do."""


class TenantKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The hashed keys of a tenant, as ``saferank keys new`` prints them."""

    rank: Annotated[HashedKeys, about("Hashes of keys for servers: pages and their clicks.")] = ()
    feedback: Annotated[HashedKeys, about("Hashes of keys for browsers: clicks by token.")] = ()
    read: Annotated[HashedKeys, about("Hashes of keys for looking: dashboard, metrics, log.")] = ()
    operate: Annotated[HashedKeys, about("Hashes of keys for operators: looking, switches.")] = ()


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a running service; they do not change while it runs. ``settings_of`` checks types and ranges."""

    host: Annotated[Text, about("Address to listen on; elsewhere than loopback needs keys.")] = "127.0.0.1"
    port: Annotated[int, about("Port to listen on; 0 takes a free one and prints it.", ge=0, le=65535)] = 8080
    store: Annotated[
        Text, about("Folder of the store, made when it is missing; or the address of a PostgreSQL database.")
    ] = "saferank-store"
    policy: Annotated[str, about("Policy of contexts that are opened or reset from now on.")] = "safe-draw"
    rule: Annotated[
        str,
        about(
            "Decision rule of contexts that are opened or reset from now on: anytime:ALPHA is the error of a pair, "
            "budget:ALPHA of all pairs."
        ),
    ] = "anytime:1e-5"
    trust: Annotated[
        Trust, about("How sure you are, before any click, that production has two neighbours the right way round.")
    ] = 0.977
    certificate_days: Annotated[
        Days, about("Length of an epoch of certificates: one holds to the end of the next epoch; 0: without end.")
    ] = 14.0
    window_seconds: Annotated[
        float, about("How long clicks of a page are collected before they count.", gt=0, le=30 * 86400)
    ] = 1800.0
    source_daily_pages: Annotated[
        int, about("Pages of one source that count in a day and context; 0 is no limit.", ge=0, le=10**6)
    ] = 100
    mode: Annotated[Mode, about("What calls get that name no mode: live, shadow or off.")] = "live"
    holdout_share: Annotated[
        HoldoutShare,
        about("Share of pages, by visitor and window, that are production's, to compare with; 0: no comparison."),
    ] = 0.1
    guardrail_drop: Annotated[
        GuardrailDrop, about("Relative loss of clicks against the holdout at which exploring is stopped; 0: never.")
    ] = 0.05
    traffic_share: Annotated[
        float,
        about("Share of visitors whose pages the policy may choose, until POST /v1/traffic changes it.", ge=0, le=1),
    ] = 1.0
    least_traffic: Annotated[
        Amount,
        about("Clicked pages that a context must expect in certificate_days to be explored; below half it waits."),
    ] = 0.0
    freshness_seconds: Annotated[
        float,
        about("A server that has not heard from its store for so long serves production's rankings.", ge=1, le=3600),
    ] = 5.0
    keep_days: Annotated[
        Days, about("Closed pages older than this are deleted; what they taught stays. 0: pages are never deleted.")
    ] = 0.0
    max_contexts: Annotated[Count, about("Contexts that a tenant may open; one more is refused with 422.")] = 20000
    max_loaded_mb: Annotated[
        Count, about("Megabytes that contexts may take in a process; of the tenant with the most some are put away.")
    ] = 1000
    tenants: Annotated[
        dict[Id, TenantKeys],
        about("Tenants and the hashes of their keys; without any, one tenant `default` and no keys."),
    ] = {}
    operator_keys: Annotated[
        HashedKeys, about("Hashes of the keys that may switch off all tenants, of `saferank keys operator`.")
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...], about("Web origins whose pages may send feedback, like https://shop.example.")
    ] = ()
    max_items: Annotated[
        int, about("Longest base_ranking and longest list of candidates in a call.", ge=1, le=MOST_ITEMS)
    ] = MOST_ITEMS
    max_lag_seconds: Annotated[
        float,
        about("When the event loop is behind by more than this, new requests are refused with 503.", gt=0, le=3600),
    ] = 0.25
    tenant_rate: Annotated[
        Amount, about("Requests a second that a tenant may send on average, 429 beyond; 0 is no limit.")
    ] = 0.0
    tenant_burst: Annotated[Count, about("Requests that a tenant may send at once under tenant_rate.")] = 1000
    log_level: Annotated[Literal["debug", "info", "warning", "error"], about("Least level logged to stderr.")] = "info"
    ubi_page_id: Annotated[
        Text, about("Where a UBI event has the id of its page, like event_attributes.impression_id.")
    ] = "query_id"
    ubi_click_actions: Annotated[
        tuple[str, ...], about("UBI actions that are clicks; others are accepted and ignored.")
    ] = ("click",)
    traces: Annotated[bool, about("Spans of rank and feedback for OpenTelemetry; needs saferank[traces].")] = False

    def __post_init__(self) -> None:
        """What the types cannot say; MisuseError names the setting."""
        from saferank.policies import policy_kind
        from saferank.statistics.decision import decision_rule

        name = "policy"
        try:
            kind = policy_kind(self.policy)
            check_servable_parts(kind)
            name = "rule"
            kind.check_rule(decision_rule(self.rule), live=True)
        except ValueError as problem:
            raise MisuseError(name, str(problem)) from problem
        for origin in self.cors_origins:
            scheme, separator, host = origin.partition("://")
            if scheme not in ("http", "https") or not separator or not host or "/" in host or "*" in host:
                what = f"found {origin!r}, expected origins like https://shop.example, without a path"
                raise MisuseError("cors_origins", what)
        if self.traces and importlib.util.find_spec("opentelemetry") is None:
            raise MisuseError("traces", "needs OpenTelemetry; to get it: pip install 'saferank[traces]'")
        self._check_keys()

    def _check_keys(self) -> None:
        if not self.has_keys and not is_loopback(self.host):
            raise MisuseError(
                "host",
                f"{self.host} can be reached from other machines and there are no keys; "
                "listen on 127.0.0.1, or make keys with `saferank keys new` and put them into [tenants]",
            )
        hashes = [key for keys in self.tenants.values() for of_role in msgspec.structs.astuple(keys) for key in of_role]
        hashes += self.operator_keys
        if len(set(hashes)) < len(hashes):
            what = "a key is listed twice; every key belongs to one tenant and one purpose, or to operator_keys"
            raise MisuseError("tenants", what)

    @property
    def has_keys(self) -> bool:
        """True when callers must show a key."""
        return bool(self.tenants)

    @property
    def unknowable(self) -> list[str]:
        """What cannot be known or prevented under these settings, in sentences for the start and the dashboard."""
        found = []
        if not self.holdout_share:
            found.append(
                "no page is held out (holdout_share is 0): whether served pages get more or fewer clicks than "
                "production's cannot be known, and the guardrail has nothing to compare with"
            )
        elif not self.guardrail_drop:
            found.append("the guardrail is off (guardrail_drop is 0): a loss of clicks does not stop by itself")
        return found


def settings_of(given: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> Settings:
    """Settings from plain values, numbers also as texts; SettingsError names the setting and where it came from."""
    place: list[str] = []
    try:
        tenants = dict(given.get("tenants", {}))
        for name, keys in tenants.items():
            place = ["tenants", name]
            check_tenant(name)
            tenants[name] = msgspec.convert(keys, TenantKeys)
        place = []
        return msgspec.convert({**given, "tenants": tenants}, Settings, strict=False)
    except (msgspec.ValidationError, ValueError) as problem:
        sentence = str(problem)
        if isinstance(problem, msgspec.ValidationError):
            field, sentence = explained(problem, TenantKeys if place else Settings)
            place += [field] if field else []
        where = ".".join(place)
        name = re.split(r"[.\[]", where)[0]
        if name in ("tenants", "operator_keys") and "matching regex" in str(problem):
            sentence = "expected the hash of a key, sha256: and 64 digits, as `saferank keys` prints it"
        source = (sources or {}).get(name, "default")
        told = "" if source == "default" else f" ({source})"
        raise SettingsError(f"{where}{told}: {sentence}") from problem


def masked(store: str) -> str:
    """The address of a store without its password, for people and logs.

    >>> masked("postgresql://shop:secret@db/rankings")
    'postgresql://shop:***@db/rankings'
    """
    return re.sub(r"(://[^/@:]*:)[^/@]*@", r"\1***@", store)


def check_servable_parts(kind: "PolicyKind") -> None:
    """ValueError when a policy lacks what serving needs."""
    missing = kind.missing_to_be_served()
    if missing:
        raise ValueError(
            f"{kind.name} cannot be served: it has no {missing[0]} (docs/researchers/add-a-policy.md); safe-draw can"
        )


def check_tenant(name: str) -> None:
    """ValueError when a tenant cannot be called so."""
    try:
        msgspec.convert(name, Id)
    except msgspec.ValidationError as problem:
        raise ValueError(f"{name[:50]!r}: 1 to {LONGEST_ID} characters, no control characters") from problem


@functools.lru_cache(maxsize=64)  # asked for every request
def is_loopback(host: str) -> bool:
    """True when only this machine can reach the address.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- where settings come from: flags, the environment, a TOML file, defaults; the first that has one wins ---
# What is not known is an error that names the nearest known name: a setting that is spelt wrong must not be ignored.


PREFIX = "SAFERANK_SERVE_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
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
    return [
        (name, _shown(name, getattr(effective.settings, name)) or "none", source)
        for name, source in effective.sources.items()
    ]


def _shown(name: str, value: Any) -> str:
    if name == "tenants":
        return ", ".join(f"{tenant} (masked)" for tenant in value)
    if name == "operator_keys":
        return f"{len(value)} (masked)" if value else ""
    return ", ".join(value) if isinstance(value, tuple) else masked(str(value))


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
    if name != "tenants":
        return text
    try:
        return json.loads(text)
    except ValueError as problem:
        raise SettingsError(f"{variable}: expected a JSON object, {problem}") from problem
