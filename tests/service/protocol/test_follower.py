"""What others publish is followed, and a publication that cannot be read holds up no other."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from saferank.service.calls.replay import verify
from saferank.service.protocol.contexts import terms_by_settings
from saferank.service.server import Server
from saferank.service.wire.calls import RankCall
from saferank.store.contract import SHARDS, OperationKind
from saferank.store.embedded.file import FILE_NAME
from tests.service.house import BASE, House, T, run
from tests.store.memory import MemoryStore


def test_a_damaged_publication_holds_up_no_other_context(tmp_path: Path) -> None:
    async def test() -> None:
        h = House(tmp_path)
        await h.start()
        for name in ("damaged", "whole"):
            page = await h.rank(name)
            await h.accept(page, page.ranking[0])
        await h.close()
        contexts = [await h.server.known_context(T, name) for name in ("damaged", "whole")]
        for context in contexts:
            context.fold = await h.server.contexts.fold_of(context.row, None)  # as a server that does not close them
            context.published, context.held_in = 0, -1
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            connection.execute("UPDATE publication SET body = CAST(body || x'00' AS BLOB) WHERE context = 1")
            connection.commit()
        await h.server.follower.follow()
        assert [context.fold.pages for context in contexts] == [0, 1]
        await h.stop()

    run(test())


def test_who_has_lost_a_shard_follows_what_its_new_holder_publishes(tmp_path: Path) -> None:
    """The first server holds everything until a second one comes. Then each knows what the other has learnt."""

    async def test() -> None:
        h = House(tmp_path)
        store = MemoryStore(lambda: h.now)
        servers = [Server(h.settings, store, h, name) for name in ("one", "two")]
        names = [f"context {number}" for number in range(40)]  # of both halves of the shards

        async def some_pages(server: Server) -> None:
            await server.heartbeat.attempt()
            for name in names:
                await server.rank(T, RankCall(context=name, base_ranking=BASE, k=3))
            await server.writer.flush()

        async def closed(*running: Server) -> None:
            h.now += 15_000
            for server in running:
                await server.heartbeat.attempt()
            for server in running:
                await server.closer.close_due(everything=True)
            for server in running:
                await server.follower.follow()

        await servers[0].start(loops=False)
        await some_pages(servers[0])
        await closed(servers[0])
        await servers[1].start(loops=False)
        for server in servers * 2:  # shards are shared out
            await server.heartbeat.attempt()
        for _ in range(3):
            for server in servers:
                await some_pages(server)
            await closed(*servers)
        for server in servers:
            await some_pages(server)
            found = {context.number: context.published for context in server.contexts}
            assert found == dict(await store.published(0)), server.name
        held = [sum(context.held_in >= 0 for context in server.contexts) for server in servers]
        assert sum(held) == len(names) and min(held) > 0, held

    run(test())


@pytest.mark.parametrize("kind", [OperationKind.ROLLBACK, OperationKind.RESET])
def test_who_acknowledges_that_something_was_undone_does_not_serve_by_it_any_more(
    tmp_path: Path, kind: OperationKind
) -> None:
    """An operator's call returns when all servers have acknowledged; some may read the new knowledge a second later."""

    async def test() -> None:
        h = House(tmp_path)
        store = MemoryStore(lambda: h.now)
        servers = [Server(h.settings, store, h, name) for name in ("holder", "other")]
        call = RankCall(context="c", base_ranking=BASE, k=3)
        for server in servers:
            await server.start(loops=False)
        for server in servers * 2:
            await server.heartbeat.attempt()
        for server in servers:
            await server.rank(T, call)
            await server.writer.flush()
        h.now += 20_000
        for server in servers:
            await server.closer.close_due(everything=True)
            await server.follower.follow()
        holder, other = sorted(servers, key=lambda server: 1 % SHARDS not in server.heartbeat.leases)
        assert (await other.rank(T, call)).mode == "live"
        terms = terms_by_settings(h.settings)
        body = {"why": "a test"} | ({"version": 1} if kind == OperationKind.ROLLBACK else {"terms": terms})
        operation = await store.add_operation(T, 1, kind, json.dumps(body))
        await other.heartbeat.attempt()
        assert [row.acknowledged for row in await store.servers() if row.server == "other"] == [operation.number]
        assert (await other.rank(T, call)).mode == "off"
        await holder.heartbeat.attempt()
        await holder.closer.close_due(everything=True)
        assert (await other.rank(T, call)).mode == "off"
        await other.follower.follow()
        assert [(await server.rank(T, call)).mode for server in servers] == ["live", "live"]

    run(test())


def test_the_terms_that_a_reset_takes_are_followed(tmp_path: Path) -> None:
    """Two servers on one store: one closes the context, the other serves it by what was published."""

    async def test() -> None:
        h = House(tmp_path, certificate_days=0)
        store = MemoryStore(lambda: h.now)
        settings = structs.replace(h.settings, policy="safe-draw", rule="anytime:0.1", certificate_days=3.0)
        servers = [Server(h.settings, store, h, "one"), Server(settings, store, h, "two")]
        call = RankCall(context="c", base_ranking=BASE, k=3)
        for server in servers:
            await server.start(loops=False)
        for server in servers * 2:  # shards are shared out
            await server.heartbeat.attempt()
        for server in servers:
            await server.rank(T, call)
            await server.writer.flush()
        h.now += 20_000
        for server in servers:
            await server.closer.close_due(everything=True)

        async def obey() -> None:
            while True:
                for server in servers:
                    await server.heartbeat.attempt()
                    await server.closer.close_due(everything=True)
                    await server.follower.follow()
                await asyncio.sleep(0)

        others = asyncio.create_task(obey())
        view = await servers[1].reset(T, "c", "the present terms")
        others.cancel()
        await asyncio.gather(others, return_exceptions=True)
        assert (view.policy, view.certificate_days) == ("safe-draw", 3)
        contexts = [await server.known_context(T, "c") for server in servers]
        assert sorted(context.held_in >= 0 for context in contexts) == [False, True]
        for server, context in zip(servers, contexts, strict=True):
            await server.follower.follow()
            assert context.terms == contexts[0].terms and context.terms.policy == "safe-draw"
            page = await server.rank(T, call)
            assert server.tokens.open(page.token)[0].policy == "safe-draw"
        for server in servers:
            await server.writer.flush()
        h.now += 20_000
        for server in servers * 2:
            await server.heartbeat.attempt()
            await server.closer.close_due(everything=True)
        await verify(store)

    run(test())
