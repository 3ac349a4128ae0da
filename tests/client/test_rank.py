"""``rank`` never raises and never takes long, whatever the service or the caller does."""

import asyncio
import json
import logging
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from saferank_client import AsyncClient, Client, Ranked

from tests.client import nasty_servers as nasty

Asker = Callable[..., Ranked]
LIMIT = 0.15
MUCH = 1.5
"""Seconds a call may take on a machine that is busy with other tests; without the limit the servers take far longer."""


@pytest.fixture(params=["sync", "async"])
def client_of(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes a client whose ``rank`` is called in the same way for both kinds."""
    made: list[Client | AsyncClient] = []

    def make(url: str, **options: Any) -> Any:
        client = (Client if request.param == "sync" else AsyncClient)(url, **options)
        made.append(client)
        return client

    yield make
    for client in made:
        if isinstance(client, Client):
            client.close(1)
        else:
            asyncio.run(client.close(1))


def rank(client: Client | AsyncClient, *arguments: Any, **options: Any) -> Ranked:
    if isinstance(client, Client):
        return client.rank(*arguments, **options)
    return asyncio.run(client.rank(*arguments, **options))


def test_a_good_answer_is_the_page(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.well) as server:
        page = rank(
            client_of(server.url, key="secret", time_limit=5), "shop", ["a", "b", "c"], ["x"], k=2, session_id="s"
        )
    assert page == Ranked(("b", "a"), "t1", impression_id="i1", leader_version=3, mode="live")
    assert server.bodies("/v1/rank") == [
        {"context": "shop", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2, "session_id": "s"}
    ]
    assert server.authorization == "bearer secret"


def test_pins_are_sent_and_an_answer_that_moves_them_is_not_believed(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.well) as server:
        client = client_of(server.url, time_limit=5)
        page = rank(client, "shop", ["a", "b", "c"], ["x"], k=2, pinned=["a"])
        assert (page.items, page.fallback) == (("a", "b"), True)
        assert page.why is not None and "moves an id that is pinned" in page.why
        assert server.bodies("/v1/rank")[0]["pinned"] == ["a"]
        assert rank(client, "shop", ["b", "a", "c"], k=2, pinned=["b"]).items == ("b", "a")
        for pins in (["c"], ["a", "b"], "a", [1]):
            refused = rank(client, "shop", ["a", "b", "c"], k=2, pinned=pins)
            assert refused.items == ("a", "b") and refused.why is not None and "pinned" in refused.why


BAD_ANSWERS = {
    "too short": nasty.answers(nasty.rank_answer(["a"])),
    "too long": nasty.answers(nasty.rank_answer(["a", "b", "c"])),
    "an id twice": nasty.answers(nasty.rank_answer(["a", "a"])),
    "a foreign id": nasty.answers(nasty.rank_answer(["a", "z"])),
    "a number": nasty.answers(nasty.rank_answer(["a", 1])),
    "a list in the list": nasty.answers(nasty.rank_answer(["a", ["b"]])),
    "no ranking": nasty.answers({"token": "t"}),
    "no token": nasty.answers(nasty.rank_answer(["a", "b"], token=None)),
    "not an object": nasty.answers(["a", "b"]),
    "not JSON": nasty.says(200, b"<html>Welcome to the hotel</html>"),
    "not UTF-8": nasty.says(200, b'{"ranking": "\xff\xfe"}'),
    "deep JSON": nasty.says(200, b"[" * 100_000),
    "empty": nasty.says(200, b""),
    "packed": nasty.says(200, b"\x1f\x8b garbage", "Content-Encoding: gzip"),
    "no HTTP": lambda connection, path, body: connection.sendall(b"220 mail.example ESMTP\r\n\r\n"),
    "a redirect": nasty.says(307, b"", "Location: http://127.0.0.1:1/elsewhere"),
    "500": nasty.says(500, b"{}"),
    "503": nasty.says(503, b"{}", "Retry-After: 1"),
    "422": nasty.says(422, b'{"title": "no"}'),
    "404": nasty.says(404, b""),
    "endless": nasty.pours,
    "cut off": nasty.breaks_off,
    "reset": nasty.resets,
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer_gives_productions_page_and_a_reason(kind: str, client_of: Callable[..., Any]) -> None:
    with nasty.serving(BAD_ANSWERS[kind]) as server:
        page = rank(client_of(server.url, time_limit=5), "shop", ["a", "b", "c"], ["x"], k=2)
    assert (page.items, page.token, page.fallback) == (("a", "b"), None, True)
    assert page.why and "no answer within" not in page.why


@pytest.mark.parametrize("server_kind", [nasty.hangs, nasty.trickles], ids=lambda kind: kind.__name__)
def test_the_limit_is_for_the_whole_call(server_kind: nasty.Reply, client_of: Callable[..., Any]) -> None:
    with nasty.serving(server_kind) as server:
        client, start = client_of(server.url, time_limit=LIMIT), time.monotonic()
        page = rank(client, "shop", ["a", "b"], k=2)
        assert time.monotonic() - start < MUCH
    assert (page.items, page.why) == (("a", "b"), "no answer within 150 ms")


def test_a_search_for_the_address_that_hangs_is_left_behind(
    client_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(20))
    start = time.monotonic()
    page = rank(client_of("http://shop.invalid:80", time_limit=LIMIT), "shop", ["a"])
    assert time.monotonic() - start < MUCH
    released.set()
    assert page.why == "no answer within 150 ms"


def test_nobody_there(client_of: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    page = rank(client_of(f"http://127.0.0.1:{port}", time_limit=5), "shop", ["a"])
    assert page.items == ("a",) and page.why and "cannot be reached" in page.why


def test_servers_are_tried_in_turn_within_the_limit_and_the_one_that_answered_stays(
    client_of: Callable[..., Any],
) -> None:
    """One is away, one hangs, one is stopping; the fourth answers."""
    stopping = nasty.says(503, b"{}", "Retry-After: 1")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        nasty.serving(nasty.hangs) as hanging,
        nasty.serving(stopping) as leaving,
        nasty.serving(nasty.well) as server,
    ):
        away = f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.close()
        client = client_of([away, hanging.url, leaving.url, server.url], time_limit=4.0)
        pages = [rank(client, "shop", ["a", "b", "c"], k=2) for _ in range(3)]
    assert [page.fallback for page in pages] == [False] * 3
    asked = [len(one.bodies("/v1/rank")) for one in (hanging, leaving, server)]
    assert asked == [1, 1, 3]


def test_when_no_server_answers_the_limit_holds_for_all_together(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.hangs) as one, nasty.serving(nasty.trickles) as other:
        client, start = client_of([one.url, other.url], time_limit=LIMIT), time.monotonic()
        page = rank(client, "shop", ["a", "b"], k=2)
        assert time.monotonic() - start < MUCH
    assert (page.items, page.why) == (("a", "b"), "no answer within 150 ms")


def test_the_client_shows_the_request_id_of_a_refusal(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.says(422, b"{}", "X-Request-Id: id-7")) as server:
        page = rank(client_of(server.url, time_limit=5), "shop", ["a"])
    assert page.why and "(request id-7)" in page.why


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(client_of: Callable[..., Any]) -> None:
    answered = threading.Event()

    def closes_after_every_second(connection: socket.socket, path: str, body: bytes) -> None:
        if answered.is_set():
            answered.clear()
            connection.close()
        else:
            answered.set()
            nasty.well(connection, path, body)

    with nasty.serving(closes_after_every_second) as server:
        client = client_of(server.url, time_limit=5)
        pages = [rank(client, "shop", ["a", "b"]) for _ in range(2)]
        assert len(server.requests) == 3
    assert [page.fallback for page in pages] == [False, False]


BAD_ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    "no base ranking": (("c", None), {}, ()),
    "an empty one": (("c", []), {}, ()),
    "text": (("c", "abc"), {}, ()),
    "bytes": (("c", b"abc"), {}, ()),
    "numbers": (("c", [1, 2, 3]), {"k": 2}, (1, 2)),
    "an id twice": (("c", ["a", "a", "b"]), {"k": 2}, ("a", "a")),
    "a candidate twice": (("c", ["a", "b"], ["x", "x"]), {"k": 1}, ("a",)),
    "candidates None": (("c", ["a", "b"], None), {"k": 1}, ("a",)),
    "k too large": (("c", ["a", "b"]), {"k": 3}, ("a", "b")),
    "k zero": (("c", ["a", "b"]), {"k": 0}, ()),
    "k negative": (("c", ["a", "b"]), {"k": -1}, ("a", "b")),
    "k a fraction": (("c", ["a", "b"]), {"k": 1.5}, ("a", "b")),
    "k True": (("c", ["a", "b"]), {"k": True}, ("a", "b")),
    "k text": (("c", ["a", "b"]), {"k": "2"}, ("a", "b")),
    "context None": ((None, ["a", "b"]), {"k": 1}, ("a",)),
    "session a number": (("c", ["a", "b"]), {"k": 1, "session_id": 7}, ("a",)),
    "too many": (("c", [str(i) for i in range(20_000)]), {"k": 2}, ("0", "1")),
    "without an end": (("c", iter(lambda: "a", "b")), {"k": 2}, ("a", "a")),
}


@pytest.mark.parametrize("kind", BAD_ARGUMENTS)
def test_bad_arguments_give_what_is_there(kind: str, client_of: Callable[..., Any]) -> None:
    arguments, options, expected = BAD_ARGUMENTS[kind]
    with nasty.serving(nasty.well) as server:
        page = rank(client_of(server.url, time_limit=5), *arguments, **options)
    assert (page.items, page.token, page.fallback) == (expected, None, True) and page.why
    assert server.requests == []


class Nasty(list[str]):
    def __iter__(self) -> Any:
        raise SystemError("iterating is not what it was")


def test_even_a_list_that_raises(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.well) as server:
        assert rank(client_of(server.url), "c", Nasty(["a"])).items == ()


def test_a_generator_will_do(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.well) as server:
        page = rank(client_of(server.url, time_limit=5), "c", (item for item in "ab"), (item for item in "x"))
    assert page.items == ("b", "a")
    assert server.bodies("/v1/rank")[0]["candidates"] == ["x"]


def test_each_kind_of_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "saferank_client")
    with nasty.serving(nasty.well) as server, Client(server.url) as client:
        for _ in range(3):
            client.rank("c", None)  # type: ignore[arg-type]
            client.rank("c", ["a"], k=5)
    assert len(caplog.records) == 2


def test_after_repeated_failures_it_answers_without_asking(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.says(500, b"")) as server:
        client = client_of(server.url, time_limit=5)
        pages = [rank(client, "c", ["a", "b"], k=1) for _ in range(8)]
        assert len(server.requests) == 5
        assert [page.items for page in pages] == [("a",)] * 8
        assert pages[-1].why and pages[-1].why.startswith("not tried: calls failed repeatedly; next try in")
        server.reply = nasty.well
        deadline = time.monotonic() + 120
        while (page := rank(client, "c", ["a", "b"])).fallback and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not page.fallback


def test_refusals_do_not_open_the_breaker(client_of: Callable[..., Any]) -> None:
    with nasty.serving(nasty.says(422, b"{}")) as server:
        client = client_of(server.url, time_limit=5)
        for _ in range(8):
            rank(client, "c", ["a"])
        assert len(server.requests) == 8


def test_a_closed_client_gives_productions_page() -> None:
    with nasty.serving(nasty.well) as server:
        client = Client(server.url)
        assert client.close() and client.close()
        assert client.rank("c", ["a", "b"], k=1) == Ranked(("a",), None, True, "the client is closed")


@pytest.mark.parametrize("url", ["", "shop.example:8700", "ftp://shop.example", "http://", None])
def test_a_wrong_address_is_said_when_the_client_is_made(url: Any) -> None:
    with pytest.raises(ValueError, match="is not the address of a service"):
        Client(url)


def test_cancelled_requests_leave_a_usable_pool() -> None:
    """More calls that run out of time than the pool has connections; then all is well."""
    with nasty.serving(nasty.hangs) as server, Client(server.url, time_limit=0.01) as client:
        client._link._breaker._enough = 10**9
        threads = [
            threading.Thread(target=lambda: [client.rank("c", ["a", "b"]) for _ in range(30)]) for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.reply, client._link._limit = nasty.well, 10.0
        assert not client.rank("c", ["a", "b"]).fallback


def test_threads_may_share_it() -> None:
    pages: list[Ranked] = []
    with nasty.serving(nasty.well) as server, Client(server.url, time_limit=20) as client:
        threads = [
            threading.Thread(target=lambda: pages.extend(client.rank("c", ["a", "b"]) for _ in range(20)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [page.items for page in pages] == [("b", "a")] * 160


def test_a_forked_child_can_use_its_parents_client() -> None:
    """As web servers that load the application before they fork do."""
    with nasty.serving(nasty.well) as server, Client(server.url, time_limit=20) as client:
        assert not client.rank("c", ["a", "b"]).fallback
        child = _fork()
        if child == 0:
            try:
                page = client.rank("child", ["a", "b"])
                client.feedback(page, ["a"])
                os._exit(0 if not page.fallback and client.flush(10) else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert not client.rank("c", ["a", "b"]).fallback
    assert [body["context"] for body in server.bodies("/v1/rank")] == ["c", "child", "c"]


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, which is the point here
        return os.fork()


def test_a_cancelled_task_is_cancelled() -> None:
    """The one exception that passes through: the caller's own wish to stop."""

    async def stopped() -> None:
        async with AsyncClient(server.url, time_limit=20) as client:
            task = asyncio.create_task(client.rank("c", ["a"]))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with nasty.serving(nasty.hangs) as server:
        asyncio.run(stopped())


def test_the_callers_loop_goes_on_meanwhile() -> None:
    async def ticking() -> int:
        async with AsyncClient(server.url, time_limit=0.5) as client:
            task, ticks = asyncio.create_task(client.rank("c", ["a"])), 0
            while not task.done():
                await asyncio.sleep(0.01)
                ticks += 1
            return ticks

    with nasty.serving(nasty.hangs) as server:
        assert asyncio.run(ticking()) > 3


def test_ids_of_any_script_survive(client_of: Callable[..., Any]) -> None:
    ids = ["товар", "商品", "<script>", "a\u202eb", "😀"]
    with nasty.serving(nasty.well) as server:
        page = rank(client_of(server.url, time_limit=5), "c", ids)
    assert page.items == tuple(ids[::-1])
    assert json.loads(json.dumps(server.bodies("/v1/rank")[0]["base_ranking"])) == ids
