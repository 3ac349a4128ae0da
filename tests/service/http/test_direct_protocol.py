"""The short way of the hot calls: the same answers as the long way, and refusals before anything is parsed."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from saferank.service.http.direct_protocol import BODY_SECONDS
from saferank.service.http.gate import WAITING
from tests.running_service import RunningService
from tests.service.http.server_process import running
from tests.service.http.service_in_process import RANK

BODY = json.dumps(RANK).encode()
REPORT = json.dumps({"token": "token:a,b", "clicks": ["a"]}).encode()


def request(path: str = "/v1/rank", body: bytes = BODY, more: str = "") -> bytes:
    """A request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Wire:
    """A connection, and the answers on it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._file = connection, connection.makefile("rb")

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        status = int(self._file.readline().split()[1])
        headers = {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self._file.read(int(headers.get("content-length", "0")))

    def close(self) -> None:
        self._file.close()

    def is_at_end(self) -> bool:
        return self._file.read(1) == b""


@contextmanager
def wire(service: RunningService) -> Iterator[Wire]:
    host, _, port = service.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection, closing(Wire(connection)) as found:
        yield found


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with running() as found:
        yield found


def test_a_call_in_one_piece_and_in_many_has_the_same_answer(service: RunningService) -> None:
    whole, found = request(more="X-Request-Id: mine\r\n"), []
    for cuts in ([], [10], [len(whole) - 5], [200, 250], list(range(1, len(whole)))):
        with wire(service) as connection:
            for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
                connection.send(whole[start:end])
            status, headers, body = connection.answer()
            assert (status, headers["x-request-id"], headers["x-frame-options"]) == (200, "mine", "DENY")
            found.append((sorted(set(headers) - {"date"}), body))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("pause", [0.0, 3 * BODY_SECONDS], ids=["at once", "later"])
def test_a_body_may_come_after_its_head(service: RunningService, pause: float) -> None:
    head, end, body = request().partition(b"\r\n\r\n")
    with wire(service) as connection:
        for _ in range(2):
            connection.send(head + end)
            time.sleep(pause)
            connection.send(body[:20])
            time.sleep(pause)
            connection.send(body[20:])
            assert connection.answer()[0] == 200
    with wire(service) as connection:  # a client that goes before its body has come harms nobody
        connection.send(head + end)
        time.sleep(pause)
    with wire(service) as connection:
        connection.send(request())
        assert connection.answer()[0] == 200


def test_one_connection_takes_calls_of_all_kinds_in_turn(service: RunningService) -> None:
    with wire(service) as connection:
        for _ in range(3):
            connection.send(request())
            assert connection.answer()[0] == 200
            connection.send(request("/v1/feedback", REPORT))
            assert connection.answer()[0] == 200
            connection.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.answer()[0] == 200
            connection.send(request(body=b"{"))
            assert connection.answer()[0] == 400


def test_pipelined_requests_are_answered_in_order(service: RunningService) -> None:
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with wire(service) as connection:
        connection.send(request() + health + request("/v1/feedback", REPORT) + request())
        bodies = [connection.answer()[2] for _ in range(4)]
    assert [b"impression_id" in body for body in bodies] == [True, False, False, True]
    assert b"version" in bodies[1] and b"accepted" in bodies[2]


def test_a_connection_is_closed_when_the_client_asks_for_it_or_the_body_is_too_large(service: RunningService) -> None:
    with wire(service) as connection:
        connection.send(request(more="Connection: close\r\n"))
        status, headers, _ = connection.answer()
        assert (status, headers["connection"]) == (200, "close") and connection.is_at_end()
    with running(max_body_bytes=1000) as small, wire(small) as connection:
        connection.send(request(body=b'{"context": "' + b"a" * 2000 + b'"}'))
        status, headers, _ = connection.answer()
        assert (status, headers["connection"]) == (413, "close") and connection.is_at_end()


def test_an_answer_varies_with_the_origin_where_origins_are_let_in(service: RunningService) -> None:
    with running(cors_origins=["https://shop.example"]) as open_to_pages, wire(open_to_pages) as connection:
        for more, allowed in (("", None), ("Origin: https://shop.example\r\n", "https://shop.example")):
            connection.send(request("/v1/feedback", REPORT, more))
            status, headers, _ = connection.answer()
            assert (status, headers["vary"], headers.get("access-control-allow-origin")) == (200, "Origin", allowed)
    with wire(service) as connection:
        connection.send(request("/v1/feedback", REPORT))
        assert "vary" not in connection.answer()[1]


def test_expect_and_other_versions_go_the_long_way(service: RunningService) -> None:
    with wire(service) as connection:
        head, _, body = request(more="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
        connection.send(head + b"\r\n\r\n")
        assert connection.answer()[0] == 100
        connection.send(body)
        assert connection.answer()[0] == 200
    with wire(service) as connection:
        connection.send(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert connection.answer()[0] == 200 and connection.is_at_end()


def test_what_cannot_be_answered_in_time_is_refused_unread_and_health_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDBACK_TAKES", "5")
    with running(max_in_flight=1) as service, ExitStack() as stack:
        busy = [stack.enter_context(wire(service)) for _ in range(WAITING)]
        other = stack.enter_context(wire(service))
        for connection in busy:
            connection.send(request("/v1/feedback", REPORT))
            assert service.next_output() == "working\n"
        other.send(request("/v1/feedback", b"this is not even JSON"))
        status, headers, body = other.answer()
        assert (status, headers["retry-after"], json.loads(body)["title"]) == (503, "1", "Too busy")
        assert headers["x-request-id"] and headers["x-frame-options"] == "DENY"
        other.send(request("/v1/feedback", REPORT, more="X-Request-Id: mine\r\n"))
        status, headers, body = other.answer()
        assert (status, headers["x-request-id"], json.loads(body)["title"]) == (503, "mine", "Too busy")
        other.send(request())  # reports that wait for the disk are no reason to refuse a page
        assert other.answer()[0] == 200
        other.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.answer()[0] == 200
        assert [connection.answer()[0] for connection in busy] == [200] * WAITING
        other.send(request("/v1/feedback", REPORT))
        assert other.answer()[0] == 200
