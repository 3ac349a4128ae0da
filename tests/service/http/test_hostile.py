"""What was done to the second edition, done to a real server with a fake server."""

import json
import time
from pathlib import Path

import pytest

from saferank.service.keys import hashed
from tests.running_service import RunningService, post_bytes, read_answer
from tests.service.http.fake_process import running
from tests.service.http.service_in_process import RANK

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = json.dumps(RANK).encode()
PATIENCE = 20.0
"""Seconds for what takes a millisecond, on a machine that does other work as well."""

POSTS = [
    "/v1/rank", "/v1/feedback", "/v1/beacon", "/v1/beacon?key=wrong", "/ubi_rank", "/ubi_events", "/ubi_queries",
    "/v1/kill", "/v1/operator/kill", "/v1/contexts/c/kill", "/v1/contexts/c/rollback", "/v1/contexts/c/reset",
    "/v1/contexts/c/settings",
]  # fmt: skip


def is_well(server: RunningService) -> bool:
    with server.connect() as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(HEALTH)
        try:
            return read_answer(connection)[0] == 200
        except TimeoutError:
            return False


def processor_seconds(server: RunningService) -> float:
    facts = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    user, system = facts.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100


BLANK_VALUES = b"POST /v1/rank HTTP/1.1\r\n" + b"a:    \r\n" * 37 + b"a\r\n\r\n"
LONG_BLANK = b"POST /v1/rank HTTP/1.1\r\na:" + b" " * 40_000 + b"\0\r\n\r\n"


@pytest.mark.parametrize("head", [BLANK_VALUES, LONG_BLANK, HEALTH + LONG_BLANK], ids=["many", "long", "second"])
def test_blank_headers_do_not_hang_the_process(head: bytes) -> None:
    with running() as server, server.connect() as connection:
        before = processor_seconds(server)
        connection.sendall(head)
        assert is_well(server)
        connection.settimeout(PATIENCE)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass
        assert is_well(server)
        assert processor_seconds(server) - before < 1.0


def test_who_calls_is_asked_before_the_body_is_waited_for() -> None:
    tenants = {"shop": {"rank": [hashed("r")], "feedback": [hashed("f")]}}
    with running(tenants=tenants, operator_keys=[hashed("o")], body_seconds=1000) as server:
        for path in POSTS:
            with server.connect() as client:
                client.settimeout(PATIENCE)
                client.sendall(post_bytes(path, b"", "Content-Length: 1000"))
                assert read_answer(client)[0] == 401, path


UPGRADES = {
    "curl": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    "anything": ("Connection: upgrade", "Upgrade: anything/1"),
    "websocket": ("Connection: Upgrade", "Upgrade: websocket"),
}


def test_a_request_that_offers_another_protocol_is_answered_once_with_its_body_read() -> None:
    """Its body is a request by itself, which must not run; requests behind it are answered in their order."""
    inner = post_bytes("/v1/kill", b'{"on": true, "why": "smuggled"}')
    with running() as server:
        for headers in UPGRADES.values():
            request, second = (post_bytes("/v1/rank", body, *headers) for body in (inner, BODY))
            for cut in (len(request), len(request) - len(inner), len(request) - 20):
                with server.connect() as connection:
                    connection.settimeout(PATIENCE)
                    connection.sendall(request[:cut])
                    time.sleep(0.1)
                    connection.sendall(request[cut:] + second + HEALTH)
                    data = b""
                    while b'"status":"ok"' not in data:
                        piece = connection.recv(65536)
                        assert piece, data
                        data += piece
                answers = [int(answer[:3]) for answer in data.split(b"HTTP/1.1 ")[1:]]
                assert answers == [400, 200, 200], data  # the first body is no JSON: it was read
        metrics = server.exchange(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")[2]
        assert b'endpoint="/v1/rank",status="200"} 9.0' in metrics and b'endpoint="/v1/kill"' not in metrics


def test_silent_connections_and_endless_bodies_make_room_for_others() -> None:
    endless = b"POST /v1/beacon HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{"
    with running(max_connections=4) as server:
        opened = [server.connect() for _ in range(6)]
        for connection in opened[4:]:
            connection.sendall(endless)
        for _ in range(8):
            assert is_well(server)
        assert opened[0].recv(1) == b""
        for connection in opened:
            connection.close()


def test_a_stop_does_not_wait_for_silent_connections() -> None:
    with running() as server, server.connect(), server.connect() as half:
        half.sendall(HEALTH[:20])
        assert is_well(server)
        assert server.stop() == 0
