"""Every setting of the service: its name, its default, what it does and what it may be.

``docs/service.md`` lists them all; a test compares. Where the values come from is the business of
``settings_sources.py``.
"""

import functools
import ipaddress
from pathlib import Path
from typing import Annotated, Literal

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

from saferank.service.calls import LONGEST_ID, MOST_ITEMS, Id, Mode

HashedKey = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Share = Annotated[float, Field(ge=0, le=1)]


class SettingsError(ValueError):
    """Settings that cannot be used; the message names the setting and says what would do."""


class TenantKeys(BaseModel):
    """The hashed keys of a tenant, as ``saferank keys new`` prints them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: tuple[HashedKey, ...] = Field(default=(), description="Hashes of the keys for servers: every endpoint.")
    feedback: tuple[HashedKey, ...] = Field(default=(), description="Hashes of the keys for browsers: feedback only.")


class Settings(BaseModel):
    """The settings of a running service; they do not change while it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(
        default="127.0.0.1", min_length=1, description="Address to listen on; elsewhere than loopback needs keys."
    )
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one and prints it.")
    store: Path = Field(
        default=Path("saferank-store"), description="Folder of the durable log, made when it is missing."
    )
    policy: str = Field(default="kl-ucb-br", description="Policy of contexts that are opened from now on.")
    rule: str = Field(default="paper:1e-5", description="Decision rule of contexts that are opened from now on.")
    window_seconds: float = Field(
        default=1800.0, gt=0, le=30 * 86400, description="How long clicks of a page are collected before they count."
    )
    mode: Mode = Field(default="live", description="What calls get that name no mode: live, shadow or off.")
    holdout_share: Share = Field(default=0.0, description="Share of sessions that always get production's ranking.")
    max_pending: int = Field(
        default=20_000, ge=1, description="Writes that may wait for the disk; beyond, feedback is refused with 503."
    )
    snapshot_every: int = Field(
        default=20_000, ge=1, description="Events of a context between two snapshots of its state."
    )
    max_contexts: int = Field(
        default=20_000, ge=1, description="Contexts that a tenant may open; one more is refused with 422."
    )
    max_open_pages: int = Field(
        default=5_000_000,
        ge=1,
        description="Pages whose windows may be open; beyond, production's page is served and not logged.",
    )
    tenants: dict[Id, TenantKeys] = Field(
        default={}, description="Tenants and the hashes of their keys; without any, one tenant `default` and no keys."
    )
    token_keys: dict[Id, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64,}$")]] = Field(
        default={}, description="Keys that sign tokens, as hexadecimal by name; without any, those kept in the store."
    )
    token_key: str | None = Field(
        default=None, description="Name of the key that signs; without it the last one of the list."
    )
    cors_origins: tuple[str, ...] = Field(
        default=(), description="Web origins whose pages may send feedback, like https://shop.example."
    )
    max_body_bytes: int = Field(
        default=1_000_000, ge=1000, le=100_000_000, description="Larger bodies are refused with 413."
    )
    max_items: int = Field(
        default=MOST_ITEMS,
        ge=1,
        le=MOST_ITEMS,
        description="Longest base_ranking and longest list of candidates in a call.",
    )
    body_seconds: float = Field(
        default=10.0, gt=0, description="A body that takes longer to arrive is refused with 408."
    )
    max_in_flight: int = Field(
        default=1000, ge=1, description="Rank calls, reports and others worked on at a time, each; beyond, 503."
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
    backlog: int = Field(default=2048, ge=1, description="Connections that the system keeps waiting.")
    keep_alive_seconds: int = Field(default=30, ge=1, description="How long an idle connection stays open.")
    stop_seconds: float = Field(
        default=10.0, gt=0, description="How long a stop waits for running requests and the disk."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is logged to stderr."
    )
    access_log_share: Share = Field(default=0.0, description="Share of answered requests that are logged.")

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, name: str) -> str:
        from saferank.policies import policy_kind

        policy_kind(name)
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

    @model_validator(mode="after")
    def _keys_fit(self) -> "Settings":
        if self.token_key is not None and self.token_key not in self.token_keys:
            raise ValueError(f"token_key: {self.token_key!r} is not among token_keys ({', '.join(self.token_keys)})")
        if not self.has_keys and not is_loopback(self.host):
            raise ValueError(
                f"host: {self.host} can be reached from other machines and there are no keys; "
                "listen on 127.0.0.1, or make keys with `saferank keys new` and put them into [tenants]"
            )
        hashes = [key for tenant in self.tenants.values() for key in (*tenant.rank, *tenant.feedback)]
        if len(set(hashes)) < len(hashes):
            raise ValueError("tenants: a key is listed twice; every key belongs to one tenant and one purpose")
        return self

    @property
    def has_keys(self) -> bool:
        """True when callers must show a key."""
        return bool(self.tenants)


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
