"""Settings: where they come from, what is refused, what is shown."""

from pathlib import Path

import pytest

from saferank.service.keys import hashed
from saferank.service.settings import (
    Settings,
    SettingsError,
    check_tenant,
    effective_settings,
    from_texts,
    is_loopback,
    shown,
)

KEY = hashed("secret")


def write(folder: Path, text: str) -> Path:
    file = folder / "serve.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_flags_win_over_the_environment_over_the_file_over_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1\nhost = "127.0.0.2"\nmode = "shadow"\n')
    environment = {"SAFERANK_SERVE_PORT": "2", "SAFERANK_SERVE_HOST": "127.0.0.3", "SAFERANK_NO_SKIPS": "1"}
    settings, sources = effective_settings({"port": 3, "store": None}, environment, file)
    assert (settings.port, settings.host, settings.mode, settings.rule) == (3, "127.0.0.3", "shadow", "anytime:1e-5")
    assert sources["port"] == "flag"
    assert sources["host"] == "environment SAFERANK_SERVE_HOST"
    assert sources["mode"] == f"file {file}"
    assert sources["rule"] == "default"


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 1")
    assert effective_settings({}, {"SAFERANK_SERVE_CONFIG": str(file)}, None).settings.port == 1


def test_lists_and_keys_in_the_environment() -> None:
    environment = {
        "SAFERANK_SERVE_CORS_ORIGINS": "https://a.example, https://b.example",
        "SAFERANK_SERVE_TENANTS": f'{{"shop": {{"rank": ["{KEY}"]}}}}',
    }
    settings = effective_settings({}, environment, None).settings
    assert settings.cors_origins == ("https://a.example", "https://b.example")
    assert settings.tenants["shop"].rank == (KEY,)


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("prot = 1", "unknown setting 'prot'; the nearest known is port"),
        ("port = 70000", "port (file"),
        ('port = "x"', "must be a whole number"),
        ("port = 1.5", "port"),
        ("window_seconds = 0", "must be more than 0"),
        ("holdout_share = 0.6", "must be at most 0.5"),
        ("guardrail_drop = 1.0", "guardrail_drop"),
        ("least_traffic = inf", "least_traffic (file"),
        ("tenant_rate = inf", "tenant_rate (file"),
        ("max_lag_seconds = inf", "max_lag_seconds (file"),
        ("traffic_share = 1.1", "traffic_share"),
        ('mode = "on"', "'live', 'shadow' or 'off'"),
        ('policy = "best"', "unknown policy 'best'"),
        ('rule = "guess"', "rule"),
        ('cors_origins = ["*"]', "https://shop.example"),
        ('cors_origins = ["https://a.example/path"]', "without a path"),
        ('host = "0.0.0.0"', "saferank keys new"),
        ('[tenants.shop]\nrank = ["plain-secret"]', "tenants.shop.rank[0]"),
        ("[tenants.shop]\nrang = []", "tenants.shop.rang"),
        (f'[tenants.a]\nrank = ["{KEY}"]\n[tenants.b]\nrank = ["{KEY}"]', "listed twice"),
        ("port = ", "is not TOML"),
        ("port = 1\nport = 2", "is not TOML"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, saying: str) -> None:
    with pytest.raises(SettingsError) as caught:
        effective_settings({}, {}, write(tmp_path, text))
    assert saying in str(caught.value)
    assert "plain-secret" not in str(caught.value)


def test_unknown_names_elsewhere() -> None:
    with pytest.raises(SettingsError, match=r"SAFERANK_SERVE_PROT.*nearest known is SAFERANK_SERVE_PORT"):
        effective_settings({}, {"SAFERANK_SERVE_PROT": "1"}, None)
    with pytest.raises(SettingsError, match="unknown setting 'prot'; the nearest known is port"):
        from_texts(["prot=1"])
    with pytest.raises(SettingsError, match="expected NAME=VALUE"):
        from_texts(["port"])
    with pytest.raises(SettingsError, match="JSON"):
        effective_settings({}, {"SAFERANK_SERVE_TENANTS": "{"}, None)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no\.toml: cannot be read: No such file"):
        effective_settings({}, {}, tmp_path / "no.toml")


def test_other_machines_are_let_in_with_keys_only() -> None:
    tenants = {"shop": {"rank": [KEY]}}
    assert effective_settings({"host": "0.0.0.0", "tenants": tenants}, {}, None).settings.has_keys
    with pytest.raises(SettingsError, match="can be reached from other machines"):
        effective_settings({"host": "::"}, {}, None)


def test_secrets_are_masked() -> None:
    given = {"tenants": {"shop": {"rank": [KEY]}}}
    rows = {name: (value, source) for name, value, source in shown(effective_settings(given, {}, None))}
    assert set(rows) == set(Settings.__struct_fields__)
    assert rows["tenants"] == ("shop (masked)", "flag")
    assert rows["cors_origins"] == ("none", "default")


def test_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.1", "example.org", ""))


def test_names_of_tenants() -> None:
    check_tenant("shop")
    with pytest.raises(ValueError, match="control"):
        check_tenant("a\n")
