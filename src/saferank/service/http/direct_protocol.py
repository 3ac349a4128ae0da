"""The shortest way from a socket to the two hot calls and back.

A rank call or a report that arrives whole, or its head and then its body, goes to the gate without the machinery for
bodies that come in pieces, and its answer is one write to the socket. A page that needs nothing to be waited for is
answered before this returns to the event loop. Everything else (other paths, more pieces, pipelined requests) goes
uvicorn's way. When the service is too busy, a hot call is refused before it is parsed: a refusal must cost little, or
refusing is what keeps the service busy.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from saferank.service.http.bounded_protocol import LARGEST_HEAD, BoundedProtocol
from saferank.service.http.gate import CLOSE, SECURITY, Gate, Reply, request_id_of
from saferank.service.http.whole_calls import WholeHead, head_in

BODY_SECONDS = 0.05
"""So long the body of a hot call is waited for here. With the long way come its own limits, which are longer."""


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


_SECURITY = _lines(SECURITY)


class _Cycle:
    """Stands where uvicorn has its own cycle while a hot call is answered: the next request waits for it."""

    def __init__(self) -> None:
        self.response_complete = self.disconnected = False
        self.keep_alive = True  # until the server stops
        self.message_event = _NOBODY_WAITS


class _NoEvent:
    def set(self) -> None:
        """Do nothing: no task waits for this event."""


_NOBODY_WAITS = _NoEvent()


class DirectProtocol(BoundedProtocol):
    """A connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begun = b""  # a hot call of which a piece is missing
        self._body_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Answer a hot call that is whole; what is not, and all other requests, go uvicorn's way."""
        gate, waited = self._gate, bool(self._begun)
        if waited:
            data = self._take_begun() + data
        head = head_in(data) if gate is not None and self._expects_request() else None
        if gate is None or head is None:
            super().data_received(data)
            return
        missing = head.size + head.length - len(data)
        if missing == 0:
            self._take(gate, head, data[head.size :])
        elif missing > 0 and not waited and head.size + head.length <= LARGEST_HEAD:
            self._await_body(data)
        else:
            super().data_received(data)

    def _expects_request(self) -> bool:
        """True when what came before was whole and was answered, and the client reads its answers."""
        if self._in_head or not self._is_idle() or self.flow.write_paused or self.transport.is_closing():
            return False
        return self.cycle is None or not getattr(self.cycle, "more_body", False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._take_begun()
        super().connection_lost(exc)

    def _await_body(self, data: bytes) -> None:
        """Most clients send the body of a request right behind its head. A later one is uvicorn's to wait for."""
        self._begun = data
        self._body_timer = self.loop.call_later(BODY_SECONDS, self._hand_over)

    def _take_begun(self) -> bytes:
        begun, self._begun = self._begun, b""
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
        return begun

    def _hand_over(self) -> None:
        super().data_received(self._take_begun())

    def _take(self, gate: Gate, head: WholeHead, body: bytes) -> None:
        self._unset_keepalive_if_required()
        self._end_head()
        request_id = request_id_of(head.headers)
        reply = gate.begin(head, body, request_id)
        if isinstance(reply, Reply):
            self._send(reply, request_id)
            self.on_response_complete()
            return
        self.cycle = cycle = _Cycle()  # type: ignore[assignment]
        self._stop_waiting()
        task = self.loop.create_task(self._send_later(reply, request_id, cycle))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _send_later(self, coming: Coroutine[Any, Any, Reply], request_id: str, cycle: _Cycle) -> None:
        reply = await coming
        if not cycle.disconnected and not self.transport.is_closing():
            self._send(reply if cycle.keep_alive else reply._replace(headers=(*reply.headers, CLOSE)), request_id)
            cycle.response_complete = True
            self.on_response_complete()

    def _send(self, reply: Reply, request_id: str) -> None:
        head = b"content-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n" % (
            reply.content_type,
            len(reply.body),
            request_id.encode(),
        )
        dated, extra = _lines(self.server_state.default_headers), _lines(reply.headers)
        self.transport.write(b"".join((STATUS_LINE[reply.status], dated, head, _SECURITY, extra, b"\r\n", reply.body)))
        if CLOSE in reply.headers:
            self.transport.close()
