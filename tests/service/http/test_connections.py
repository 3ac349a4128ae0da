"""Room for connections and unfinished bodies: who is closed when there is none, and who is not waited for."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from saferank.service.http.limits import (
    HEAD_SECONDS,
    LARGEST_HEAD,
    LONGEST_BLANK,
    GuardedProtocol,
    OpenConnections,
)


class Client:
    """A connection that notes when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def give_up(self) -> None:
        self.is_closed = True

    def is_late(self, now: float) -> bool:
        return False


def closed(clients: list[Client]) -> list[int]:
    return [number for number, client in enumerate(clients) if client.is_closed]


def made(most: int = 3, most_bytes: int = 100) -> tuple[OpenConnections, list[Client], list[int]]:
    """Three connections, and what was noted about closing."""
    noted: list[int] = []
    found, clients = OpenConnections(most, most_bytes, lambda: noted.append(1)), [Client() for _ in range(6)]
    for client in clients[:3]:
        found.add(client)
    return found, clients, noted


def test_one_too_many_closes_the_one_that_has_waited_the_longest() -> None:
    connections, clients, noted = made()
    assert len(connections) == 3 and not noted
    connections.add(clients[3])
    connections.wait(clients[1])  # it was answered just now
    connections.add(clients[4])
    assert closed(clients) == [0, 2]
    assert (len(connections), len(noted)) == (3, 2)


def test_what_is_being_answered_is_not_closed_and_if_all_are_the_new_one_goes() -> None:
    connections, clients, _ = made()
    connections.stop_waiting(clients[0])
    connections.add(clients[3])
    assert closed(clients) == [1]
    for number in (2, 3):
        connections.stop_waiting(clients[number])
    connections.add(clients[4])
    assert closed(clients) == [1, 4]
    connections.remove(clients[0])
    connections.add(clients[5])
    assert closed(clients) == [1, 4]


def test_too_many_bytes_of_unfinished_bodies_close_the_one_that_began_first() -> None:
    connections, clients, _ = made()
    for number in (1, 0, 1):
        connections.hold(clients[number], 40)
    assert closed(clients) == [1]
    connections.hold(clients[2], 60)
    assert closed(clients) == [1]  # 100 bytes are allowed, and those of the closed one are gone
    connections.stop_waiting(clients[0])  # whole: no longer unfinished
    connections.hold(clients[2], 40)
    assert closed(clients) == [1]
    connections.wait(clients[2])  # for the next piece
    connections.stop_waiting(clients[2])
    connections.hold(clients[0], 100)
    assert closed(clients) == [1]


def test_a_closed_connection_does_not_come_back() -> None:
    connections, clients, _ = made()
    connections.add(clients[3])
    connections.wait(clients[0])  # its last answer ends after it was closed
    connections.add(clients[4])
    assert closed(clients) == [0, 1] and len(connections) == 3


class Transport(asyncio.Transport):
    """Notes whether it was closed."""

    def __init__(self, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer})
        self.is_aborted = False
        self.unread = 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


class Inner(asyncio.Protocol):
    """A protocol that notes what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.got.append(data)


class Guarded:
    """A connection with a guard, and a clock that the test moves."""

    def __init__(self, all_of_them: OpenConnections | None = None, peer: tuple[str, int] = ("127.0.0.1", 4711)) -> None:
        self.now = 0.0
        self.all = OpenConnections(10, 100, lambda: None) if all_of_them is None else all_of_them
        self.inner, self.transport = Inner(), Transport(peer)
        loop: Any = SimpleNamespace(time=lambda: self.now)
        self.guard = GuardedProtocol(self.inner, self.all, loop)
        self.guard.connection_made(self.transport)

    def is_closed_after(self, seconds: float) -> bool:
        self.now += seconds
        self.all.close_late(self.now)
        return self.transport.is_aborted


@pytest.mark.parametrize("pieces", [[], [b"\r\n"], [b"GET / HTTP/1.1\r\n", b"Host: h\r\n"]])
def test_a_head_that_does_not_come_is_not_waited_for(pieces: list[bytes]) -> None:
    connection = Guarded()
    for piece in pieces:
        assert not connection.is_closed_after(HEAD_SECONDS / 4)
        connection.guard.data_received(piece)
    assert connection.is_closed_after(15)


def test_a_request_may_take_its_time_and_the_next_head_may_not() -> None:
    connection = Guarded()
    connection.guard.data_received(b"head")
    assert connection.all.by_address["127.0.0.1", 4711] is connection.guard
    connection.guard.begin()
    assert not connection.is_closed_after(10 * HEAD_SECONDS)
    connection.guard.data_received(b"body")
    assert not connection.is_closed_after(10 * HEAD_SECONDS)
    connection.guard.end()
    assert not connection.is_closed_after(10 * HEAD_SECONDS)  # how long it may be idle is uvicorn's to say
    connection.guard.data_received(b"n")
    assert not connection.is_closed_after(HEAD_SECONDS - 1)
    connection.guard.data_received(b"ext")
    assert connection.is_closed_after(2)


def test_the_protocol_gets_all_bytes_in_bounded_pieces_until_it_closes() -> None:
    connection = Guarded()
    connection.guard.data_received(b"x" * (2 * LARGEST_HEAD + 1))
    assert [len(piece) for piece in connection.inner.got] == [LARGEST_HEAD, LARGEST_HEAD, 1]
    connection.transport.abort()
    connection.guard.data_received(b"more")
    assert len(connection.inner.got) == 3


def test_a_row_of_blanks_ends_the_connection_in_however_many_pieces_it_comes() -> None:
    for size in (1, 7, 10_000):
        for count, closed in ((LONGEST_BLANK, False), (LONGEST_BLANK + 1, True)):
            connection = Guarded()
            data = b"X:" + b" \t" * (count // 2) + b" " * (count % 2) + b"\0"
            for start in range(0, len(data), size):
                connection.guard.data_received(data[start : start + size])
            assert connection.transport.is_aborted == closed, (size, count)


def test_a_connection_that_has_ended_is_forgotten() -> None:
    connection = Guarded()
    connection.guard.connection_lost(None)
    assert len(connection.all) == 0 and not connection.all.by_address
