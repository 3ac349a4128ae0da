"""How many connections there are, and how much of unfinished bodies they hold.

Anybody can open a connection and send nothing, or send a body byte by byte, before any key is looked at. When there is
no room, the connection that has waited the longest for its client is closed. So a new connection always gets in, and a
request that is being answered is never cut off.
"""

from collections.abc import Callable
from typing import Protocol


class Connection(Protocol):
    """A connection, as seen from here."""

    def give_up(self) -> None:
        """Close it at once."""


class OpenConnections:
    """The connections of a process."""

    def __init__(self, most: int, most_bytes: int, note_closed: Callable[[], None]) -> None:
        self._most, self._most_bytes, self._note_closed = most, most_bytes, note_closed
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # those without a whole request, the longest wait first
        self._unfinished: dict[Connection, int] = {}  # bytes of bodies that are arriving, the oldest first
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """A client has connected."""
        self._open.add(connection)
        self._waiting[connection] = None
        if len(self._open) > self._most:
            self._close(next(iter(self._waiting)))

    def remove(self, connection: Connection) -> None:
        """A connection has ended."""
        self._open.discard(connection)
        self.stop_waiting(connection)

    def wait(self, connection: Connection) -> None:
        """A request was answered; the next one is waited for."""
        self.stop_waiting(connection)
        if connection in self._open:
            self._waiting[connection] = None

    def stop_waiting(self, connection: Connection) -> None:
        """A request has arrived whole."""
        self._waiting.pop(connection, None)
        if connection in self._unfinished:
            self._bytes -= self._unfinished.pop(connection)

    def hold(self, connection: Connection, size: int) -> None:
        """A piece of a body has arrived, of so many bytes."""
        self._unfinished[connection] = self._unfinished.get(connection, 0) + size
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._close(next(iter(self._unfinished)))

    def _close(self, connection: Connection) -> None:
        self._note_closed()
        self.remove(connection)  # at once: the connection itself ends with the next turn of the loop
        connection.give_up()
