"""Several processes on one port: the parent binds and watches, every child is a server of its own.

All of them accept from the same socket. A child that ends by itself is replaced; a signal to the parent stops them all.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable

Serve = Callable[[socket.socket, Callable[[str], None]], int]
"""Serves the socket until a signal, calls back when it is ready, and returns an exit code."""

_PAUSE_SECONDS = 1.0
"""Between the end of a child and its replacement."""


class Workers:
    """The children of a parent."""

    def __init__(self, count: int, bound: socket.socket, serve: Serve) -> None:
        self._count, self._bound, self._serve = count, bound, serve
        self._children: set[int] = set()
        self._stopping = False

    def run(self, ready: Callable[[str], None]) -> int:
        """Serve until a signal stops it; the exit code is that of the first child that could not start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        reading, writing = os.pipe()
        for _ in range(self._count):
            self._start(reading, writing)
        os.close(writing)
        code = self._wait_until_ready(reading, ready)
        return code or self._watch()

    def _start(self, *pipe: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child:
            self._children.add(child)
            return
        code = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            code = self._serve(self._bound, lambda address: _tell(pipe, address))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _wait_until_ready(self, reading: int, ready: Callable[[str], None]) -> int:
        """Wait for a line of every child; the pipe ends early when one of them has ended."""
        with os.fdopen(reading) as lines:
            told = [line.strip() for line in (lines.readline() for _ in range(self._count)) if line]
        if len(told) == self._count:
            ready(told[0])
            return 0
        self._stop(signal.SIGTERM, None)
        return self._watch() or 1

    def _watch(self) -> int:
        """Replace children that end, until all are told to stop and have ended; the first code that is not 0."""
        code = 0
        while self._children:
            child, status = os.wait()
            self._children.discard(child)
            if self._stopping:
                code = code or os.waitstatus_to_exitcode(status)
            else:
                time.sleep(_PAUSE_SECONDS)
                self._start()
        return abs(code)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        for child in self._children:
            try:
                os.kill(child, signal.SIGTERM)
            except ProcessLookupError:
                continue


def _tell(pipe: tuple[int, ...], address: str) -> None:
    """Tell the parent that a child is ready; a replacement has nobody to tell."""
    if pipe:
        os.write(pipe[1], f"{address}\n".encode())
