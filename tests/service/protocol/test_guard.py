"""The guardrail in a running server: what stops, what a stop leaves behind, how it ends, and that replay agrees."""

import asyncio
import json
import math
import random
from pathlib import Path

import pytest

from saferank.service.knowledge import arms
from saferank.service.knowledge.arms import EXPLORE, HOLDOUT
from saferank.service.protocol.all_contexts import guarded_whole
from saferank.service.server import Server
from saferank.service.wire.calls import FeedbackCall, RankCall, SettingsCall
from saferank.store.contract import OperationKind, OperationRow
from tests.service.house import BASE, House, T, house, run
from tests.store.memory import MemoryStore
from tests.store.stores import alarms_of

GUARDED = {"holdout_share": 0.5, "guardrail_drop": 0.03}


async def visits(h: House, pages: int, served: float, held_out: float, dice: random.Random, context: str = "c") -> int:
    """Pages of new visitors, of which the given shares are clicked; all windows end. Returns how many were explored."""
    explored = 0
    h.now += 1  # pages of the millisecond of an operation belong to before it
    for _ in range(pages):
        page = await h.rank(context=context)
        arm = h.record(page).arm
        explored += arm == EXPLORE
        rate = {EXPLORE: served, HOLDOUT: held_out}.get(arm, held_out)
        if dice.random() < rate:
            await h.accept(page, page.ranking[0])
    await h.close()
    return explored


async def stops(h: House) -> list[OperationRow]:
    return [row for row in await h.store.operations(0) if row.kind == OperationKind.GUARDRAIL]


def test_a_context_may_have_a_guardrail_of_its_own(tmp_path: Path) -> None:
    """The service has none: one context is stopped by its own, and another one, which loses as much, is not."""

    async def test() -> None:
        async with house(tmp_path, holdout_share=0.4) as h:
            dice = random.Random(1)
            await h.rank("c")
            own = SettingsCall(guardrail_drop=0.05, why="new shelf")
            view = await h.server.set_context(T, "c", own)
            assert view.settings.guardrail_drop == 0.05
            await h.restart()
            for name in ("c", "unguarded"):
                await visits(h, 250, 0.1, 0.8, dice, name)
            (stop,) = await stops(h)
            assert stop.context == h.server.contexts.loaded(T, "c").number  # type: ignore[union-attr]
            assert (json.loads(stop.body)["drop"], json.loads(stop.body)["error"]) == (0.05, 0.0025)
            effect, other = await h.server.effect(T, "c"), await h.server.effect(T, "unguarded")
            assert effect.guardrail is not None and effect.guardrail.stopped and other.guardrail is None
            await h.server.all_contexts.look()  # the stopped one weighs no more in the guardrail of all together
            guarded = guarded_whole(h.server.all_contexts.known(T), h.server.switches).clicks
            assert guarded == h.server.contexts.loaded(T, "unguarded").fold.compared.now[0]  # type: ignore[union-attr]
            assert guarded.served.pages > 0

    run(test())


def test_a_context_that_loses_too_much_is_stopped_durably_and_begins_again_when_it_is_switched_on(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with house(tmp_path, snapshot_every=50, **GUARDED) as h:
            dice = random.Random(1)
            await visits(h, 40, 0.9, 0.9, dice, "fine")
            assert await visits(h, 300, 0.1, 0.8, dice) > 100
            (stop,) = [row for row in await stops(h) if row.context]
            assert (stop.tenant, stop.context) == (T, h.server.contexts.loaded(T, "c").number)  # type: ignore[union-attr]
            evidence = json.loads(stop.body)
            assert evidence["log_evidence"] >= -math.log(evidence["error"]) > 0
            assert evidence["served"]["pages"] + evidence["holdout"]["pages"] == 300
            view = await h.server.effect(T, "c")
            assert view.guardrail is not None and view.guardrail.stopped and view.guardrail.stopped_at
            assert view.clicks is not None and view.clicks.high is not None and view.clicks.high < 0
            assert [alarm.kind for alarm in await alarms_of(h.store, stop.context)] == ["guardrail"] * len(
                await stops(h)
            )
            counts = h.server.counters()
            assert counts["guardrail_stops_total"] == len(await stops(h)) == counts["alarms_total"]
            assert await visits(h, 20, 0.1, 0.8, dice) == 0  # production's ranking
            await h.restart()
            assert await visits(h, 20, 0.1, 0.8, dice) == 0
            assert "guardrail" in str((await h.server.show_context(T, "c")).killed.why)

            for scope in ("c", None):
                await h.server.kill(T, scope, False, "the plug-in was repaired")
            assert (await h.server.effect(T, "c")).served.pages == 0  # a new comparison, before anybody folds
            before = len(await stops(h))
            assert await visits(h, 60, 0.8, 0.8, dice) > 10
            view = await h.server.effect(T, "c")
            assert view.served.pages + view.holdout.pages == 60
            assert view.guardrail is not None and not view.guardrail.stopped and len(await stops(h)) == before
            await h.restart()
            assert (await h.server.effect(T, "c")).served.pages == view.served.pages

    run(test())


def test_a_context_that_its_own_guardrail_stopped_does_not_stop_all_others(tmp_path: Path) -> None:
    """Its losses have ended; what all others lose is looked at without them, also after it is switched on again."""

    async def test() -> None:
        async with house(tmp_path, **GUARDED) as h:
            dice = random.Random(5)
            await h.rank("c")
            number = h.server.contexts.loaded(T, "c").number  # type: ignore[union-attr]
            while not [row for row in await stops(h) if row.context == number]:
                await visits(h, 25, 0.1, 0.9, dice)
                if (await h.server.list_contexts(T)).killed_everywhere.on:  # one look may stop both
                    await h.server.kill(T, None, False, "only one context was at fault")
                assert len(await stops(h)) < 5
            before = len(await stops(h))
            for step in range(6):
                if step == 3:
                    await h.server.kill(T, "c", False, "repaired")
                await visits(h, 40, 0.5, 0.5, dice, f"other {step}")
                await visits(h, 20, 0.5, 0.5, dice)
            assert len(await stops(h)) == before
            whole = (await h.server.effect(T, None)).guardrail
            assert whole is not None and not whole.stopped and whole.log_evidence < whole.needed / 2

    run(test())


def test_losses_that_prove_nothing_in_one_context_stop_all_together(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **GUARDED) as h:
            dice, names = random.Random(2), [f"context {number}" for number in range(12)]
            for name in names:
                await visits(h, 12, 0.1, 0.9, dice, name)
            assert [(row.tenant, row.context) for row in await stops(h)] == [(T, 0)]
            assert (await h.server.list_contexts(T)).killed_everywhere.on
            assert sum([await visits(h, 3, 0.1, 0.9, dice, name) for name in names]) == 0
            whole = await h.server.effect(T, None)
            assert whole.guardrail is not None and whole.guardrail.stopped and whole.served.pages >= 40
            one = await h.server.effect(T, names[0])
            assert one.guardrail is not None and not one.guardrail.stopped
            await h.server.kill(T, None, False, "again")
            assert (await h.server.effect(T, None)).served.pages == 0
            assert await visits(h, 10, 0.5, 0.5, dice, names[0]) > 0
            assert len(await stops(h)) == 1  # contexts that no server has closed since are not held against it
            whole = await h.server.effect(T, None)
            assert whole.served.pages + whole.holdout.pages == 10

    run(test())


def test_equal_arms_are_not_stopped_and_a_kill_of_an_operator_restarts_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, **GUARDED) as h:
            dice = random.Random(3)
            await visits(h, 200, 0.5, 0.5, dice)
            assert await stops(h) == []
            await h.server.kill(T, "c", True, "lunch")
            await h.server.kill(T, "c", False, "back")
            await visits(h, 10, 0.5, 0.5, dice)
            view = await h.server.effect(T, "c")
            assert view.served.pages + view.holdout.pages == 210
            assert view.clicks is not None and view.clicks.low < 0 < (view.clicks.high or 0)

    run(test())


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_without_a_guardrail_nothing_stops(tmp_path: Path, share: float) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=share) as h:
            assert await visits(h, 150, 0.0, 0.9, random.Random(4)) > 40
            assert await stops(h) == []
            view = await h.server.effect(T, "c")
            assert view.guardrail is None and (view.why_not is None) == (share > 0)

    run(test())


def test_a_server_adds_up_what_others_closed_and_all_obey_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers on one store. Each holds half of the shards, and neither finds enough in what it closes itself.
    The server that looks last sees the sum, and the other obeys with its next heartbeat."""

    async def test() -> None:
        monkeypatch.setattr(arms, "GUARDRAIL_ERROR", 1e-7)
        h = House(tmp_path, **GUARDED)
        store = MemoryStore(lambda: h.now)
        servers = [Server(h.settings, store, h, name) for name in ("one", "two")]
        for server in servers:
            await server.start(loops=False)
        for _ in range(2):  # shards are shared out
            for server in servers:
                await server.heartbeat.attempt()
        dice, names = random.Random(6), [f"context {number}" for number in range(62)]
        modes: set[str] = set()
        for number in range(62 * 6):
            server = servers[number % 2]
            page = await server.rank(T, RankCall(context=names[number % 62], base_ranking=BASE, k=3))
            arm = server.tokens.open(page.token)[0].arm
            if dice.random() < (0.1 if arm == EXPLORE else 0.9):
                await asyncio.gather(
                    server.feedback(T, [FeedbackCall(token=page.token, clicks=BASE[:1])]), written(server)
                )
        for server in servers:  # pages without clicks are written in time
            await server.writer.flush()
        for _ in range(3):  # windows end; both close their contexts and look
            h.now += 11_000
            for server in servers:
                await server.writer.flush()
                await server.heartbeat.attempt()
                await server.closer.close_due(everything=True)
        held = [sum(context.held_in >= 0 for context in server.contexts) for server in servers]
        assert min(held) > 20
        found = [row for row in await store.operations(0) if row.kind == OperationKind.GUARDRAIL]
        assert [(row.tenant, row.context) for row in found] == [(T, 0)]
        evidence = json.loads(found[0].body)
        own = [sum(c.fold.pages for c in server.contexts if c.held_in >= 0) for server in servers]
        assert max(own) < evidence["served"]["pages"] + evidence["holdout"]["pages"] <= sum(own) == 62 * 6
        for server in servers:
            await server.heartbeat.attempt()
            page = await server.rank(T, RankCall(context=names[0], base_ranking=BASE, k=3))
            modes.add(page.mode)
        assert modes == {"off"}
        assert sum(server.guard.stops for server in servers) == 1

    run(test())


async def written(server: Server) -> None:
    """Reports wait for the writer, whose loop does not run here."""
    await asyncio.sleep(0)
    await server.writer.flush()
