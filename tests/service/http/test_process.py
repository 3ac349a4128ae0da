"""The server on a real socket: hostile bodies, signals, and what is left when it ends."""

import asyncio
import json
import signal
import socket
import threading
from typing import cast

import pytest
import uvicorn

from saferank.service.http.process import address_of, bind, spoken_protocol
from tests.running_service import post_bytes, read_answer
from tests.service.http.fake_process import running
from tests.service.http.service_in_process import RANK

BODY = json.dumps(RANK).encode()
FEEDBACK = json.dumps({"token": "token:a", "clicks": ["a"]}).encode()
NOT_STRICT_JSON = [
    b"", b" ", b"{", b"[", b"nul", b"{'k': 1}", b'{"k": 1,}', b'{"k": 1, "k": 2}', b'{"a": {"b": 1, "b": 1}}',
    b'{"k": NaN}', b'{"k": Infinity}', b'{"k": -Infinity}', b'{"k": 1e999}', b'{"k": ' + b"9" * 5000 + b"}",
    b'{"k": 01}', b'{"k": "\xff"}', b'{"k": "\\ud800"}', b'{"\\udfff": 1}', b'{"k": "\x00"}', b"\xef\xbb\xbf{}",
    BODY + b"x", BODY + BODY, b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    BODY.decode().encode("utf-16"), b"\x1f\x8b\x08\x00",
]  # fmt: skip
NO_OBJECT = [b"null", b"[]", b'"text"', b"1", b"true", b"[{}]"]


def test_a_zoo_of_bad_json_is_refused_and_the_connection_stays() -> None:
    with running() as server, server.connect() as connection:
        for body in NOT_STRICT_JSON:
            connection.sendall(post_bytes("/v1/rank", body))
            status, headers, answer = read_answer(connection)
            assert (status, headers["content-type"]) == (400, "application/problem+json"), body[:50]
            assert json.loads(answer)["title"] == "Invalid JSON"
        for body in NO_OBJECT:
            connection.sendall(post_bytes("/v1/feedback", body))
            assert read_answer(connection)[0] == 422
        connection.sendall(post_bytes("/v1/rank", BODY))
        assert read_answer(connection)[0] == 200


def test_large_and_slow_bodies_are_refused_before_they_are_complete() -> None:
    with running(max_body_bytes=100_000, body_seconds=3) as server:
        declared = server.exchange(post_bytes("/v1/rank", b"", "Content-Length: 99999999999"))
        assert (declared[0], declared[1]["connection"]) == (413, "close")
        unlimited = post_bytes("/v1/rank", b"", "Transfer-Encoding: chunked")
        chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        assert server.exchange(unlimited, *[chunk] * 4)[0] == 413  # more than allowed, and no end yet
        slow, headers, _ = server.exchange(post_bytes("/v1/rank", BODY[:5], f"Content-Length: {len(BODY)}"))
        assert (slow, headers["connection"]) == (408, "close")
        assert server.exchange(post_bytes("/v1/rank", BODY))[0] == 200
        pieces = [BODY[:7], BODY[7:20], BODY[20:]]
        assert server.exchange(post_bytes("/v1/rank", b"", f"Content-Length: {len(BODY)}"), *pieces)[0] == 200


def test_an_endless_header_is_not_collected() -> None:
    """Before any key is looked at: the connection is closed after 64 KB, and others are answered."""
    with running() as server:
        with server.connect() as connection:
            connection.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            with pytest.raises(OSError):
                for _ in range(1000):
                    connection.sendall(b"a" * 16_384)
        assert server.exchange(post_bytes("/v1/rank", BODY))[0] == 200
        with server.connect() as connection:
            connection.sendall(b"POST /v1/rank HTTP/1.1\r\n" + b"X-A: b\r\n" * 4000)
            large = post_bytes("/v1/rank", BODY).partition(b"\r\n")[2]
            connection.sendall(large)
            assert read_answer(connection)[0] == 200  # 32 KB of headers are fine


def test_garbage_that_is_not_http_does_no_harm() -> None:
    with running() as server:
        with server.connect() as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")
        with server.connect() as connection:
            connection.sendall(post_bytes("/v1/rank", BODY)[:40])  # and away
        for path in ("/v1/rank", "/v1/nowhere"):  # its body is read, and it is not
            with server.connect() as connection:
                connection.sendall(post_bytes(path, b"-2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"))
                assert read_answer(connection)[0] == 400
        assert server.exchange(post_bytes("/v1/rank", BODY))[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert "traceback" not in server.errors()  # anybody can send this, as often as they like


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_requests_finish(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDBACK_TAKES", "1")
    with running() as server, server.connect() as connection:
        connection.sendall(post_bytes("/v1/feedback", FEEDBACK))
        assert server.next_output() == "working\n"
        server.process.send_signal(number)
        assert read_answer(connection)[0] == 200
        assert server.end() == 0
        assert server.output() == "server stopped\n"
        with pytest.raises(ConnectionRefusedError):
            server.connect()


def test_a_second_signal_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDBACK_TAKES", "1000")
    with running(stop_seconds=1000) as server, server.connect() as connection:
        connection.sendall(post_bytes("/v1/feedback", FEEDBACK))
        assert server.next_output() == "working\n"
        server.process.send_signal(signal.SIGTERM)
        assert "ready" in server.next_error()
        assert "stopping" in server.next_error()
        assert server.stop() == 128 + signal.SIGTERM


def test_a_server_that_does_not_stop_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOP_HANGS", "1")
    with running(stop_seconds=0.5) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 1
        assert "StopError" in server.errors()


def test_logs_are_lines_of_json_and_refusals_are_sampled_with_their_request_id() -> None:
    with running() as server:
        server.exchange(post_bytes("/v1/rank", BODY))
        for _ in range(100):
            server.exchange(post_bytes("/v1/rank", b"{}", "X-Request-Id: mine"))
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        lines = [json.loads(line) for line in server.errors().splitlines()]
    assert [line["event"] for line in lines if line["event"] != "refused"] == ["ready", "stopping", "stopped"]
    refused = [line for line in lines if line["event"] == "refused"]
    assert 50 <= len(refused) < 100
    assert (refused[0]["path"], refused[0]["status"], refused[0]["request_id"]) == ("/v1/rank", 422, "mine")


def test_many_connections_at_once_are_all_answered() -> None:
    with running() as server:
        answers: list[int] = []

        def ask() -> None:
            answers.append(server.exchange(post_bytes("/v1/rank", BODY))[0])

        threads = [threading.Thread(target=ask) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [200] * 50


def test_binding_takes_a_free_port_and_refuses_a_taken_one() -> None:
    with bind("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        assert address_of(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)


class _Version6:
    def getsockname(self) -> tuple[str, int, int, int]:
        return "::1", 8080, 0, 0


def test_addresses_of_version_six_are_written_in_brackets() -> None:
    assert address_of(cast(socket.socket, _Version6())) == "http://[::1]:8080"


def test_what_is_used_of_uvicorn_is_there() -> None:
    """Its configuration names the protocol that speaks HTTP with h11, and takes another one that stands before it."""

    async def nothing(scope: object, receive: object, send: object) -> None:
        """No application."""

    spoken = spoken_protocol(nothing)
    assert issubclass(spoken, asyncio.Protocol) and "h11" in spoken.__module__
    configuration = uvicorn.Config(nothing, http=asyncio.Protocol, log_config=None)
    configuration.load()
    assert configuration.http_protocol_class is asyncio.Protocol
