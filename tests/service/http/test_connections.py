"""Room for connections and unfinished bodies: who is closed when there is none."""

from saferank.service.http.connections import OpenConnections


class Client:
    """A connection that notes when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def give_up(self) -> None:
        self.is_closed = True


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
    connections.wait(clients[2])
    connections.hold(clients[0], 100)
    assert closed(clients) == [1]


def test_a_closed_connection_does_not_come_back() -> None:
    connections, clients, _ = made()
    connections.add(clients[3])
    connections.wait(clients[0])  # its last answer ends after it was closed
    connections.add(clients[4])
    assert closed(clients) == [0, 1] and len(connections) == 3
