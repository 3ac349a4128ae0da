"""uvicorn's protocol with bounds on connections, and on what a client may send before its request is complete.

An endless header, one that never ends, or a connection on which nothing is sent would otherwise be kept without a
limit, before any key is looked at.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from saferank.service.http.connections import OpenConnections
from saferank.service.http.gate import Gate

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line and its headers."""

HEAD_SECONDS = 10.0
"""A head that takes longer is not waited for. The first one of a connection is expected from its beginning."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request heads are too large or too slow."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._gate = self.app if isinstance(self.app, Gate) else None
        self._all: OpenConnections | None = None if self._gate is None else self._gate.connections
        self._in_head, self._head_bytes = False, 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected; its first head must come."""
        super().connection_made(transport)
        self._expect_head()
        if self._all is not None:
            self._all.add(self)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head that is not complete."""
        before = self._head_bytes
        super().data_received(data)
        if self._in_head:
            self._head_bytes = before + len(data)
            if self._head_bytes > LARGEST_HEAD:
                self.give_up()
                return
        elif not self._is_idle() or self.timeout_keep_alive_task is not None:
            return
        # Most heads arrive whole and need no timer. The rest of a refused body and blank lines end uvicorn's timer of
        # idle connections, so they need this one.
        if self._head_timer is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Its head is complete."""
        self._end_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        super().on_body(body)
        if self._all is not None and not self._is_idle():
            self._all.hold(self, len(body))

    def on_message_complete(self) -> None:
        """A request has arrived whole."""
        super().on_message_complete()
        self._stop_waiting()

    def on_response_complete(self) -> None:
        """A request was answered."""
        super().on_response_complete()
        if self._all is not None and (self._is_idle() or getattr(self.cycle, "more_body", False)):
            self._all.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._end_head()
        if self._all is not None:
            self._all.remove(self)
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection at once."""
        self._end_head()
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _stop_waiting(self) -> None:
        if self._all is not None and not self._is_idle():
            self._all.stop_waiting(self)

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.give_up)

    def _end_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
