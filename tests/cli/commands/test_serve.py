"""``saferank serve`` and ``saferank keys``, as a user starts and stops them."""

import json
import signal
import tomllib
from pathlib import Path

import httpx
import pytest

from saferank.service.keys import hashed
from saferank.service.settings import Settings
from tests.cli.command_line import call, start
from tests.running_service import serving

RANK = {"context": "home", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2}


def test_it_says_where_it_is_and_stops_with_0(tmp_path: Path) -> None:
    with serving("--store", tmp_path / "store") as service:
        assert (
            service.line == f"ready: {service.address} (dashboard: {service.address}/, store: {tmp_path / 'store'})\n"
        )
        assert httpx.get(f"{service.address}/readyz").status_code == 200
        page = httpx.get(service.address)
        assert page.headers["content-type"].startswith("text/html")
        assert service.stop() == 0
        assert "warming up" in service.errors()


def test_what_was_learnt_is_there_after_a_restart(tmp_path: Path) -> None:
    arguments = (
        "--store",
        tmp_path / "store",
        "--window-seconds",
        "1",
        "--set",
        "holdout_share=0",
        "--set",
        "guardrail_drop=0",
    )
    with serving(*arguments) as service:
        page = httpx.post(f"{service.address}/v1/rank", json=RANK).json()
        report = {"token": page["token"], "clicks": [page["ranking"][0]]}
        assert httpx.post(f"{service.address}/v1/feedback", json=report).json()["accepted"] is True
        assert service.stop(signal.SIGINT) == 0
    with serving(*arguments) as service:
        story = httpx.get(f"{service.address}/v1/impressions/{page['impression_id']}").json()
        assert story["clicks"] == report["clicks"]
        assert httpx.post(f"{service.address}/v1/feedback", json=report).json()["state"] == "closed"
        assert httpx.get(f"{service.address}/v1/contexts/home").json()["arms"]["explore"]["pages"] == 1


def test_one_service_per_store_and_port(tmp_path: Path) -> None:
    with serving("--store", tmp_path / "store") as service:
        second = start("serve", "--port", "0", "--store", tmp_path / "store")
        assert second.code == 1
        assert "another server is using this store" in second.err
        port = service.address.rpartition(":")[2]
        third = start("serve", "--port", port, "--store", tmp_path / "other")
        assert third.code == 2
        assert f"saferank: error: 127.0.0.1:{port}: cannot be listened on: Address already in use" in third.err


def test_a_store_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    outcome = start("serve", "--port", "0", "--store", tmp_path / "file")
    assert (outcome.code, "Traceback" in outcome.err) == (1, False)
    assert str(tmp_path / "file") in outcome.err


def test_keys_that_were_just_made_let_their_owner_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = call(capsys, "keys", "new", "my shop")
    keys = {line.split()[1]: line.split()[-1] for line in made.out.splitlines()[:4]}
    rank, feedback = keys["rank"], keys["feedback"]
    assert list(keys) == ["rank", "feedback", "read", "operate"]
    assert tomllib.loads(made.out)["tenants"]["my shop"] == {role: [hashed(key)] for role, key in keys.items()}
    file = tmp_path / "serve.toml"
    file.write_text(made.out, encoding="utf-8")
    with serving("--store", tmp_path / "store", "--config", file) as service:
        url = f"{service.address}/v1/rank"
        assert httpx.post(url, json=RANK).status_code == 401
        assert httpx.post(url, json=RANK, headers={"authorization": f"Bearer {feedback}"}).status_code == 403
        page = httpx.post(url, json=RANK, headers={"authorization": f"Bearer {rank}"}).json()
        report = {"token": page["token"], "clicks": []}
        answer = httpx.post(f"{service.address}/v1/feedback", json=report, headers={"x-api-key": feedback})
        assert answer.json()["accepted"] is True
    assert call(capsys, "keys", "new", "a\nb").code == 2


def test_keys_of_a_store_that_is_not_there_are_not_rotated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "keys", "rotate", tmp_path / "slip")
    assert (code, out) == (2, "") and "slip/log.sqlite3: there is no such file" in err
    assert not (tmp_path / "slip").exists()


def test_an_operator_key_switches_off_all_tenants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, keys = call(capsys, "keys", "operator"), call(capsys, "keys", "new", "shop")
    operator, rank = made.out.splitlines()[0].split()[-1], keys.out.splitlines()[0].split()[-1]
    assert tomllib.loads(made.out) == {"operator_keys": [hashed(operator)]}
    file = tmp_path / "serve.toml"
    file.write_text(made.out + keys.out, encoding="utf-8")
    with serving("--store", tmp_path / "store", "--config", file) as service:
        path, body = f"{service.address}/v1/operator/kill", {"on": True, "why": "an incident"}
        assert httpx.post(path, json=body, headers={"authorization": f"Bearer {rank}"}).status_code == 403
        assert httpx.post(path, json=body, headers={"authorization": f"Bearer {operator}"}).json()["on"] is True
        page = httpx.post(f"{service.address}/v1/rank", json=RANK, headers={"authorization": f"Bearer {rank}"}).json()
        assert page["mode"] == "off"


def test_settings_are_shown_with_their_sources(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SAFERANK_SERVE_MODE", "shadow")
    file = tmp_path / "serve.toml"
    file.write_text(f'port = 9\n[tenants.shop]\nrank = ["{hashed("secret")}"]', encoding="utf-8")
    shown = call(capsys, "serve", "--config", file, "--host", "0.0.0.0", "--set", "tenant_rate=5", "--show-settings")
    lines = {line.split()[0]: line for line in shown.out.splitlines()}
    assert shown.code == 0
    assert set(lines) == set(Settings.__struct_fields__)
    assert lines["mode"].endswith("= shadow  (environment SAFERANK_SERVE_MODE)")
    assert lines["port"].endswith(f"= 9  (file {file})")
    assert lines["host"].endswith("= 0.0.0.0  (flag)")
    assert lines["tenant_rate"].endswith("= 5.0  (flag)")
    assert lines["rule"].endswith("= anytime:1e-5  (default)")
    assert hashed("secret") not in shown.out


@pytest.mark.parametrize(
    ("arguments", "saying"),
    [
        (("--host", "0.0.0.0"), "there are no keys"),
        (("--port", "99999"), "port (flag): must be at most 65535"),
        (("--policy", "best"), "unknown policy 'best'"),
        (("--set", "prot=1"), "the nearest known is port"),
        (("--config", "no-such-file.toml"), "cannot be read"),
        (("--mode", "on"), "'live', 'shadow' or 'off'"),
    ],
)
def test_wrong_settings_end_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], saying: str
) -> None:
    outcome = call(capsys, "serve", *arguments)
    assert outcome.code == 2
    assert saying in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_demo_has_visitors_and_leaves_nothing_behind(tmp_path: Path) -> None:
    usual = ("--policy", "safe-draw", "--set", "holdout_share=0.1", "--set", "guardrail_drop=0.05")  # those of the demo
    with serving("--demo", *usual, TMPDIR=str(tmp_path)) as service:
        with httpx.Client(base_url=service.address) as client:
            while sum(context["pages"] for context in client.get("/v1/contexts").json()["contexts"]) < 20:
                assert service.process.poll() is None
        assert service.stop() == 0
        logged = [json.loads(line) for line in service.errors().splitlines() if line.startswith("{")]
    assert {line["event"] for line in logged if line["level"] != "info"} == {"alarm"}, "one shelf is stopped"
    assert list(tmp_path.iterdir()) == []


def test_the_demo_has_no_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(f'[tenants.shop]\nrank = ["{hashed("secret")}"]', encoding="utf-8")
    outcome = call(capsys, "serve", "--demo", "--config", file)
    assert (outcome.code, "visitors have no keys" in outcome.err) == (2, True)
