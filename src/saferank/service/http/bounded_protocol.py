"""uvicorn's protocol with bounds on what a client may send before its request is complete.

An endless header, or one that takes for ever, would otherwise be collected without a limit, before any key is looked
at.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line and its headers."""

HEAD_SECONDS = 10.0
"""A head that takes longer is not waited for."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request heads are too large or too slow."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head, self._head_bytes = False, 0
        self._head_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head that is not complete."""
        before = self._head_bytes
        super().data_received(data)
        if self._in_head:
            self._head_bytes = before + len(data)
            if self._head_bytes > LARGEST_HEAD:
                self._give_up()
            elif self._head_timer is None:  # most heads arrive whole and need none
                self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Its head is complete."""
        self._end_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._end_head()
        super().connection_lost(exc)

    def _end_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._end_head()
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()
