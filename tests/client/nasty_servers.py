"""Servers that misbehave in one way each, on a free port of this machine, ended by the test."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Reply = Callable[[socket.socket, str, bytes], None]
"""Answers one request (path, body) on a connection; closes nothing."""


class NastyServer:
    """Takes connections and hands every request to ``reply``; ``requests`` holds (path, decoded body)."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[tuple[str, Any]] = []
        self.authorization: str | None = None
        self.stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def bodies(self, path: str) -> list[Any]:
        return [body for there, body in self.requests if there == path]

    def close(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        with connection, contextlib.suppress(OSError):
            while (request := self._request(connection)) is not None:
                path, body = request
                self.requests.append((path, json.loads(body)))
                self.reply(connection, path, body)

    def _request(self, connection: socket.socket) -> tuple[str, bytes] | None:
        received = b""
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                chunk = connection.recv(65536)
                if not chunk:
                    return None
                received += chunk
            head, found, body = received.partition(b"\r\n\r\n")
            if found and len(body) >= self._length(head):
                return head.split(b" ")[1].decode(), body
        return None

    def _length(self, head: bytes) -> int:
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        self.authorization = fields.get(b"authorization", b"").decode() or None
        return int(fields.get(b"content-length", 0))


@contextlib.contextmanager
def serving(reply: Reply) -> Iterator[NastyServer]:
    server = NastyServer(reply)
    try:
        yield server
    finally:
        server.close()


def http(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Thus", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(status: int, body: bytes, *headers: str) -> Reply:
    return lambda connection, path, request: connection.sendall(http(status, body, *headers))


def answers(body: Any) -> Reply:
    return says(200, json.dumps(body).encode())


def rank_answer(ranking: list[Any], **more: Any) -> dict[str, Any]:
    return {"impression_id": "i1", "token": "t1", "ranking": ranking, "leader_version": 3, "mode": "live", **more}


ACCEPTED = {"accepted": True, "duplicate": False, "late": False, "state": "open", "closes_at": "2026-01-01T00:00:00Z"}


def well(connection: socket.socket, path: str, body: bytes) -> None:
    """What the service does: the base ranking reversed, and every event accepted."""
    call = json.loads(body)
    if path == "/v1/rank":
        answer: Any = rank_answer(call["base_ranking"][: call["k"]][::-1])
    else:
        answer = {"results": [ACCEPTED] * len(call["batch"])} if "batch" in call else ACCEPTED
    connection.sendall(http(200, json.dumps(answer).encode()))


def hangs(connection: socket.socket, path: str, body: bytes) -> None:
    """Says nothing until the client goes away."""
    while True:
        with contextlib.suppress(TimeoutError):
            if not connection.recv(1):
                return


def trickles(connection: socket.socket, path: str, body: bytes) -> None:
    """A byte now and then, so that no single read is late."""
    for byte in http(200, json.dumps(rank_answer(["a", "b"])).encode()):
        connection.sendall(bytes([byte]))
        time.sleep(0.02)


def resets(connection: socket.socket, path: str, body: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def pours(connection: socket.socket, path: str, body: bytes) -> None:
    """An answer without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    connection.settimeout(1)
    while True:
        connection.sendall(b" " * 65536)


def breaks_off(connection: socket.socket, path: str, body: bytes) -> None:
    connection.sendall(http(200, json.dumps(rank_answer(["a", "b"])).encode())[:-5])
    connection.close()
