"""A service in a process of its own on a free port of this machine, reached through real sockets."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import saferank

LONGEST = 120.0
Answer = tuple[int, dict[str, str], bytes]


class RunningService:
    """A started service and how to reach it."""

    def __init__(self, process: "subprocess.Popen[str]", line: str) -> None:
        self.process, self.line, self.address = process, line, line.split()[1]
        self._port = urlsplit(self.address).port or 0

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=LONGEST)

    def exchange(self, *pieces: bytes) -> Answer:
        """Send bytes as they are and read one answer."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return read_answer(connection)

    def end(self) -> int:
        return self.process.wait(LONGEST)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.end()

    def output(self) -> str:
        """What it printed after it was ready and was not read yet."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def next_output(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def next_error(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()


def read_answer(connection: socket.socket) -> Answer:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, f"the connection ended after {data!r}"
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        piece = connection.recv(65536)
        assert piece, f"the connection ended within the body {body!r}"
        body += piece
    return int(first.split()[1]), headers, body


def post_bytes(path: str, body: bytes, *headers: str) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def started(command: Sequence[str], **changes: str) -> Iterator[RunningService]:
    """Run Python with these arguments until it is ready; it is ended at the latest when the block is left."""
    source = str(Path(str(saferank.__file__)).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "NUMBA_DISABLE_JIT": "0", **changes}
    with subprocess.Popen(
        [sys.executable, "-W", "error", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line.startswith("ready: http://127.0.0.1:"), process.stderr.read()
            yield RunningService(process, line)
        finally:
            process.kill()


@contextmanager
def serving(*arguments: object, **changes: str) -> Iterator[RunningService]:
    """``saferank serve`` with everything real; with the policy whose kernels compile soonest, unless told otherwise.

    Nothing is refused because other tests keep the machine busy, and every page is the policy's.
    """
    usual = {"POLICY": "kl-ucb-br", "MAX_LAG_SECONDS": "60", "HOLDOUT_SHARE": "0", "GUARDRAIL_DROP": "0"}
    command = ["-m", "saferank.cli", "serve", "--port", "0", *map(str, arguments)]
    with started(command, **{f"SAFERANK_SERVE_{name}": value for name, value in usual.items()} | changes) as service:
        yield service
