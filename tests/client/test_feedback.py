"""Feedback returns at once, is delivered in the background, and is counted whatever becomes of it."""

import asyncio
import json
import socket
import time
from typing import Any

import pytest
from saferank_client import AsyncClient, Client, Delivery, Ranked
from saferank_client.delivering import Patience

from tests.client import nasty_servers as nasty

PAGE = Ranked(("a", "b"), "t1")
EAGER = Patience(attempt=0.3, first_pause=0.01, longest_pause=0.05)


def events(server: nasty.NastyServer) -> list[dict[str, Any]]:
    return [event for body in server.bodies("/v1/feedback") for event in body.get("batch", [body])]


def test_it_arrives_with_an_id_of_its_own() -> None:
    with nasty.serving(nasty.well) as server, Client(server.url) as client:
        names = [client.feedback(PAGE, ["a"]), client.feedback("t2", ["b", "b"], event_id="e2")]
        assert client.flush(10)
        assert client.delivery == Delivery(accepted=2)
    assert names[1] == "e2" and names[0] and names[0] != "e2"
    assert events(server) == [
        {"token": "t1", "clicks": ["a"], "event_id": names[0]},
        {"token": "t2", "clicks": ["b"], "event_id": "e2"},
    ]


def test_nothing_to_report_is_not_reported() -> None:
    with nasty.serving(nasty.well) as server, Client(server.url) as client:
        assert client.feedback(Ranked(("a",), None, True, "no answer"), ["a"]) is None
        assert client.feedback(None, ["a"]) is None
        assert client.feedback(PAGE, []) is None
        assert client.flush() and client.delivery == Delivery()
    assert server.requests == []


@pytest.mark.parametrize(
    "arguments", [(PAGE, "a"), (PAGE, None), (PAGE, [1]), (PAGE, [["a"]]), (7, ["a"]), (PAGE, 3.5)], ids=repr
)
def test_bad_arguments_are_counted_not_raised(arguments: Any) -> None:
    with nasty.serving(nasty.well) as server, Client(server.url) as client:
        assert client.feedback(*arguments) is None
        assert client.delivery == Delivery(refused=1)


def test_it_is_sent_again_with_the_same_id_until_it_is_taken() -> None:
    replies = iter(
        [nasty.says(503, b""), nasty.resets, nasty.resets, nasty.says(429, b""), nasty.says(200, b"hm"), nasty.hangs]
    )

    def at_last(connection: socket.socket, path: str, body: bytes) -> None:
        next(replies, nasty.well)(connection, path, body)

    with nasty.serving(at_last) as server, Client(server.url, patience=EAGER) as client:
        name = client.feedback(PAGE, ["a"])
        assert client.flush(20)
        assert client.delivery == Delivery(accepted=1)
    assert [event["event_id"] for event in events(server)] == [name] * 7


def test_many_go_in_batches_in_order() -> None:
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, patience=EAGER) as client:
        for number in range(250):
            client.feedback(f"t{number}", ["a"])
        server.reply = nasty.well
        assert client.flush(20)
        assert client.delivery == Delivery(accepted=250)
        server.requests = [request for request in server.requests if len(request[1].get("batch", [])) > 1]
    assert len(server.requests) < 50
    assert [event["token"] for event in events(server)][-100:] == [f"t{number}" for number in range(150, 250)]


def test_a_full_queue_drops_the_oldest_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, queue=10, patience=EAGER) as client:
        for number in range(25):
            client.feedback(f"t{number}", ["a"])
        assert client.delivery == Delivery(dropped=15, waiting=10)
        server.requests.clear()
        server.reply = nasty.well
        assert client.flush(20)
        assert client.delivery == Delivery(accepted=10, dropped=15)
    assert "more than 10 reports wait: the oldest are dropped (said once)" in caplog.messages


def test_what_the_service_refuses_is_not_sent_again() -> None:
    with nasty.serving(nasty.says(401, b'{"detail": "forged"}')) as server, Client(server.url) as client:
        client.feedback(PAGE, ["a"])
        assert client.flush(10)
        assert client.delivery == Delivery(refused=1)
    assert len(server.requests) == 1


def mixed(connection: socket.socket, path: str, body: bytes) -> None:
    """Accepted, late, refused; ``busy`` at first, then accepted."""
    call = json.loads(body)
    outcomes = {
        "late": {**nasty.ACCEPTED, "accepted": False, "late": True},
        "bad": {"status": 422, "title": "Item not shown", "detail": "item 'z' was not on this page", "type": "x"},
    }
    results = [outcomes.get(event["token"], nasty.ACCEPTED) for event in call.get("batch", [call])]
    connection.sendall(nasty.http(200, json.dumps({"results": results} if "batch" in call else results[0]).encode()))


def test_each_entry_of_a_batch_is_answered_for_itself() -> None:
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, patience=EAGER) as client:
        for token in ("good", "late", "bad", "good"):
            client.feedback(token, ["a"])
        server.reply = mixed
        assert client.flush(20)
        assert client.delivery == Delivery(accepted=2, late=1, refused=1)


def picky(connection: socket.socket, path: str, body: bytes) -> None:
    """Refuses a whole batch for one bad event, as strict validation does."""
    bad = b'"bad"' in body
    nasty.says(422, b"{}")(connection, path, body) if bad else nasty.well(connection, path, body)


def test_one_bad_event_does_not_take_the_others_with_it() -> None:
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, patience=EAGER) as client:
        for token in ("good", "bad", "better"):
            client.feedback(token, ["a"])
        server.reply = picky
        assert client.flush(20)
        assert client.delivery == Delivery(accepted=2, refused=1)


def test_what_cannot_be_delivered_in_time_is_given_up() -> None:
    patience = EAGER._replace(give_up_after=0.2)
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, patience=patience) as client:
        client.feedback(PAGE, ["a"])
        assert client.flush(20)
        assert client.delivery == Delivery(expired=1)


def test_flush_and_close_have_a_limit() -> None:
    with nasty.serving(nasty.hangs) as server:
        client, start = Client(server.url), time.monotonic()
        client.feedback(PAGE, ["a"])
        assert not client.flush(0.1)
        assert not client.close(0.1)
        assert time.monotonic() - start < 4
        assert client.delivery == Delivery(waiting=1)


def test_flush_does_not_sleep_through_a_long_pause() -> None:
    patience = Patience(attempt=1, first_pause=60, longest_pause=60)
    with nasty.serving(nasty.says(503, b"")) as server, Client(server.url, patience=patience) as client:
        client.feedback(PAGE, ["a"])
        while not server.requests:
            time.sleep(0.01)
        time.sleep(0.1)
        server.reply = nasty.well
        assert client.flush(20)


def test_the_async_twin_delivers_alike() -> None:
    async def shop() -> Delivery:
        async with AsyncClient(server.url, patience=EAGER, time_limit=10) as client:
            page = await client.rank("c", ["a", "b"])
            client.feedback(page, ["a"])
            client.feedback(page, "a")
            assert await client.flush(10)
            return client.delivery

    with nasty.serving(nasty.well) as server:
        assert asyncio.run(shop()) == Delivery(accepted=1, refused=1)
