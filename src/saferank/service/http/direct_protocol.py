"""The shortest way from a socket to the two hot calls and back.

A rank call or a report that arrives whole is handed to the gate without the machinery for bodies that come in pieces,
and its answer is one write to the socket. Everything else (other paths, bodies in pieces, pipelined requests) goes
uvicorn's way. When the service is too busy, a hot call is refused before it is parsed: a refusal must cost little, or
refusing is what keeps the service busy.
"""

import os
import re
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from saferank.service.http.bodies import WholeBody
from saferank.service.http.bounded_protocol import BoundedProtocol
from saferank.service.http.gate import SECURITY, Exchange, RawHeaders, as_body, problem_headers, too_busy
from saferank.service.wire.problems import MEDIA_TYPE

PATHS = {b"/v1/rank": "/v1/rank", b"/v1/feedback": "/v1/feedback"}

_REQUEST_LINE = re.compile(rb"POST (/v1/rank|/v1/feedback) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ?(\d{1,9})\r\n")
_UNUSUAL = re.compile(
    rb"\r\n(?:expect:|upgrade:|transfer-encoding:|origin:|x-request-id:|connection:(?! ?keep-alive\r))", re.IGNORECASE
)


def _lines(headers: RawHeaders) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


_SECURITY = _lines(SECURITY)
_BUSY_BODY = as_body(too_busy())
_BUSY = STATUS_LINE[HTTPStatus.SERVICE_UNAVAILABLE] + _lines(
    [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(_BUSY_BODY)),
        *problem_headers(too_busy()),
        *SECURITY,
    ]
)


class _Cycle:
    """Stands where uvicorn has its own cycle while a hot call is answered: the next request waits for it."""

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.response_complete = self.disconnected = False
        self.message_event = _NOBODY_WAITS


class _NoEvent:
    def set(self) -> None:
        """Do nothing: no task waits for this event."""


_NOBODY_WAITS = _NoEvent()


class DirectProtocol(BoundedProtocol):
    """A connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._pieces: list[bytes] | None = None  # of the body of a hot call

    def data_received(self, data: bytes) -> None:
        """Refuse what cannot be answered in time; what is not whole by the end goes uvicorn's way."""
        if self._gate is not None and self._refuses(data):
            return
        super().data_received(data)
        if self._pieces is not None and not self.transport.is_closing():
            self._hand_over()

    def on_headers_complete(self) -> None:
        """The head of a request has arrived."""
        if self._is_hot():
            self._end_head()
            self._pieces = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        if self._pieces is None:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """A request has arrived whole."""
        if self._pieces is None:
            super().on_message_complete()
            return
        body, self._pieces = b"".join(self._pieces), None
        self.cycle = cycle = _Cycle(bool(self.parser.should_keep_alive()))  # type: ignore[assignment]
        self._stop_waiting()
        scope, path = self._own_scope(), PATHS[self.url]
        busy = self._gate is not None and self._gate.enter(path)
        task = self.loop.create_task(self._answer(scope, body, cycle, busy))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _own_scope(self) -> dict[str, Any]:
        """The scope of this request; a pipelined one may replace the connection's before it is answered."""
        path = PATHS[self.url]
        return {**self.scope, "method": "POST", "path": path, "raw_path": self.url, "query_string": b""}

    # --- hot calls ---

    def _is_hot(self) -> bool:
        if self._gate is None or self.url not in PATHS or self.parser.get_method() != b"POST":
            return False
        return not (self.expect_100_continue or self.flow.write_paused or self.parser.should_upgrade()) and (
            self._is_idle() and self.parser.get_http_version() == "1.1"
        )

    def _hand_over(self) -> None:
        """The rest of the body is still to come."""
        pieces, self._pieces = self._pieces or [], None
        super().on_headers_complete()
        for piece in pieces:
            super().on_body(piece)

    async def _answer(self, scope: dict[str, Any], body: bytes, cycle: _Cycle, busy: bool) -> None:
        assert self._gate is not None
        exchange = _DirectExchange(scope, self._gate.own_headers(scope), self, cycle)
        exchange.is_refused = busy
        await self._gate.serve(scope, WholeBody(body), exchange, scope["path"])

    def finish(self, cycle: _Cycle, answer: bytes) -> None:
        """Send an answer, then take the next request."""
        if cycle.disconnected or self.transport.is_closing():
            return
        self.transport.write(answer)
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    # --- refusals ---

    def _refuses(self, data: bytes) -> bool:
        """Refuse a hot call at once if the service is too busy for it and nothing about it is unusual."""
        if self._in_head or self._pieces is not None or not self._is_idle():
            return False
        line = _REQUEST_LINE.match(data)
        if line is None or self._gate is None or not self._gate.is_busy(path := PATHS[line[1]]):
            return False
        end = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, end + 2)
        if end < 0 or length is None or _UNUSUAL.search(data, 0, end + 2):
            return False
        if len(data) != end + 4 + int(length[1]) or not self._is_between_messages():
            return False
        self._gate.count_refused(path)
        self._send_busy()
        return True

    def _is_between_messages(self) -> bool:
        """True when the parser expects a request line: what came before was whole."""
        return self.cycle is None or not getattr(self.cycle, "more_body", False)

    def _send_busy(self) -> None:
        self._unset_keepalive_if_required()
        self._end_head()
        name = b"x-request-id: %b\r\n\r\n" % os.urandom(8).hex().encode()
        self.transport.write(b"".join((_BUSY, _lines(self.server_state.default_headers), name, _BUSY_BODY)))
        self.on_response_complete()


class _DirectExchange(Exchange):
    """A hot call and its answer, which is one write."""

    def __init__(self, scope: Any, own_headers: RawHeaders, protocol: DirectProtocol, cycle: _Cycle) -> None:
        super().__init__(scope, _no_send, own_headers)
        self._protocol, self._cycle = protocol, cycle

    async def respond(self, status: int, content_type: bytes, body: bytes, headers: RawHeaders | None = None) -> None:
        """Send a whole answer."""
        self.started, self.status = True, status
        extra = [*(headers or ()), *self.own_headers]
        if (b"connection", b"close") in extra:
            self._cycle.keep_alive = False
        elif not self._cycle.keep_alive:
            extra.append((b"connection", b"close"))
        head = b"content-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n" % (
            content_type,
            len(body),
            self.request_id.encode(),
        )
        dated = _lines(self._protocol.server_state.default_headers)
        parts = (STATUS_LINE[status], dated, head, _SECURITY, _lines(extra), b"\r\n", body)
        self._protocol.finish(self._cycle, b"".join(parts))


async def _no_send(message: Any) -> None:
    raise NotImplementedError("a hot call is answered whole")
