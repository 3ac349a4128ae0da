"""Every setting of the service: its name, its default, what it does and what it may be.

``docs/engineers/service.md`` lists them all; a test compares. Where the values come from is the business of
``settings_sources.py``.
"""

import functools
import importlib.util
import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from saferank.service.wire.calls import ID_PATTERN, LONGEST_ID, MOST_ITEMS, Mode

if TYPE_CHECKING:
    from saferank.policies import PolicyKind

Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern=ID_PATTERN.removesuffix(r"(?!\n)"))]
HashedKey = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Share = Annotated[float, Field(ge=0, le=1)]


class SettingsError(ValueError):
    """Settings that cannot be used; the message names the setting and says what would do."""


class TenantKeys(BaseModel):
    """The hashed keys of a tenant, as ``saferank keys new`` prints them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: tuple[HashedKey, ...] = Field(default=(), description="Hashes of keys for servers: pages and their clicks.")
    feedback: tuple[HashedKey, ...] = Field(default=(), description="Hashes of keys for browsers: clicks by token.")
    read: tuple[HashedKey, ...] = Field(default=(), description="Hashes of keys for looking: dashboard, metrics, log.")
    operate: tuple[HashedKey, ...] = Field(default=(), description="Hashes of keys for operators: looking, switches.")


class Settings(BaseModel):
    """The settings of a running service; they do not change while it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(
        default="127.0.0.1", min_length=1, description="Address to listen on; elsewhere than loopback needs keys."
    )
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one and prints it.")
    store: str = Field(
        default="saferank-store",
        min_length=1,
        description="Folder of the store, made when it is missing; or the address of a PostgreSQL database.",
    )
    policy: str = Field(default="safe-draw", description="Policy of contexts that are opened or reset from now on.")
    rule: str = Field(
        default="anytime:1e-5",
        description="Decision rule of contexts that are opened or reset from now on: anytime:ALPHA is the error of a "
        "pair, budget:ALPHA of all pairs.",
    )
    trust: float = Field(
        default=0.977,
        ge=0.5,
        le=0.99,
        description="How sure you are, before any click, that production has two neighbours the right way round.",
    )
    certificate_days: float = Field(
        default=14.0,
        ge=0,
        le=3650,
        description="Length of an epoch of certificates: one holds to the end of the next epoch; 0: without end.",
    )
    window_seconds: float = Field(
        default=1800.0, gt=0, le=30 * 86400, description="How long clicks of a page are collected before they count."
    )
    source_daily_pages: int = Field(
        default=100, ge=0, le=10**6, description="Pages of one source that count in a day and context; 0 is no limit."
    )
    mode: Mode = Field(default="live", description="What calls get that name no mode: live, shadow or off.")
    holdout_share: float = Field(
        default=0.1,
        ge=0,
        le=0.5,
        description="Share of pages, by visitor and window, that are production's, to compare with; 0: no comparison.",
    )
    guardrail_drop: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Relative loss of clicks against the holdout at which exploring is stopped; 0: never.",
    )
    traffic_share: Share = Field(
        default=1.0,
        description="Share of visitors whose pages the policy may choose, until POST /v1/traffic changes it.",
    )
    least_traffic: float = Field(
        default=0.0,
        ge=0,
        description="Clicked pages that a context must expect in certificate_days to be explored; below half it waits.",
    )
    freshness_seconds: float = Field(
        default=5.0,
        ge=1,
        le=3600,
        description="A server that has not heard from its store for so long serves production's rankings.",
    )
    keep_days: float = Field(
        default=0.0,
        ge=0,
        le=3650,
        description="Closed pages older than this are deleted; what they taught stays. 0: pages are never deleted.",
    )
    max_contexts: int = Field(
        default=20_000, ge=1, description="Contexts that a tenant may open; one more is refused with 422."
    )
    max_loaded_mb: int = Field(
        default=1000,
        ge=1,
        description="Megabytes that contexts may take in a process; of the tenant with the most some are put away.",
    )
    tenants: dict[Id, TenantKeys] = Field(
        default={}, description="Tenants and the hashes of their keys; without any, one tenant `default` and no keys."
    )
    operator_keys: tuple[HashedKey, ...] = Field(
        default=(), description="Hashes of the keys that may switch off all tenants, of `saferank keys operator`."
    )
    cors_origins: tuple[str, ...] = Field(
        default=(), description="Web origins whose pages may send feedback, like https://shop.example."
    )
    max_items: int = Field(
        default=MOST_ITEMS,
        ge=1,
        le=MOST_ITEMS,
        description="Longest base_ranking and longest list of candidates in a call.",
    )
    max_lag_seconds: float = Field(
        default=0.25,
        gt=0,
        description="When the event loop is behind by more than this, new requests are refused with 503.",
    )
    tenant_rate: float = Field(
        default=0.0, ge=0, description="Requests a second that a tenant may send on average, 429 beyond; 0 is no limit."
    )
    tenant_burst: int = Field(
        default=1000, ge=1, description="Requests that a tenant may send at once under tenant_rate."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is logged to stderr."
    )
    ubi_page_id: str = Field(
        default="query_id",
        min_length=1,
        description="Where a UBI event has the id of its page, like event_attributes.impression_id.",
    )
    ubi_click_actions: tuple[str, ...] = Field(
        default=("click",), description="UBI actions that are clicks; others are accepted and ignored."
    )
    traces: bool = Field(
        default=False, description="Spans of rank and feedback for OpenTelemetry; needs saferank[traces]."
    )

    @field_validator("store", mode="before")
    @classmethod
    def _address(cls, store: object) -> object:
        return str(store) if isinstance(store, Path) else store

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, name: str) -> str:
        from saferank.policies import policy_kind

        check_servable_parts(policy_kind(name))
        return name

    @field_validator("rule")
    @classmethod
    def _known_rule(cls, name: str) -> str:
        from saferank.statistics.decision import decision_rule

        decision_rule(name)
        return name

    @field_validator("cors_origins")
    @classmethod
    def _whole_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            scheme, separator, host = origin.partition("://")
            if scheme not in ("http", "https") or not separator or not host or "/" in host or "*" in host:
                raise ValueError(f"found {origin!r}, expected origins like https://shop.example, without a path")
        return origins

    @field_validator("traces")
    @classmethod
    def _traces_can_be_made(cls, wanted: bool) -> bool:
        if wanted and importlib.util.find_spec("opentelemetry") is None:
            raise ValueError("needs OpenTelemetry; to get it: pip install 'saferank[traces]'")
        return wanted

    @model_validator(mode="after")
    def _rule_fits(self) -> "Settings":
        from saferank.policies import policy_kind
        from saferank.statistics.decision import decision_rule

        try:
            policy_kind(self.policy).check_rule(decision_rule(self.rule), live=True)
        except ValueError as problem:
            raise ValueError(f"rule: {problem}") from problem
        return self

    @model_validator(mode="after")
    def _keys_fit(self) -> "Settings":
        if not self.has_keys and not is_loopback(self.host):
            raise ValueError(
                f"host: {self.host} can be reached from other machines and there are no keys; "
                "listen on 127.0.0.1, or make keys with `saferank keys new` and put them into [tenants]"
            )
        roles = [(keys.rank, keys.feedback, keys.read, keys.operate) for keys in self.tenants.values()]
        hashes = [key for keys in roles for of_role in keys for key in of_role]
        hashes += self.operator_keys
        if len(set(hashes)) < len(hashes):
            raise ValueError(
                "tenants: a key is listed twice; every key belongs to one tenant and one purpose, or to operator_keys"
            )
        return self

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


def is_shared(store: str) -> bool:
    """True for a store that several processes may use."""
    return store.startswith(("postgresql://", "postgres://"))


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
        TypeAdapter(Id).validate_python(name)
    except ValidationError as problem:
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
