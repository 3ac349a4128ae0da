"""The heartbeat: freshness by clocks that may jump, stand still or disagree with the store."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from saferank.service.protocol.heartbeat import LONGEST_JUMP, MARGIN, Heartbeat
from saferank.service.protocol.switches import Switches
from saferank.service.server import Server
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankAnswer, RankCall
from saferank.store.contract import OperationKind, StoreError, StoreUnavailableError
from tests.service.house import BASE, House, T, run
from tests.service.protocol.test_guard import written
from tests.store.memory import MemoryStore

LEASE = 5.0


class Machine:
    """The clocks of a server, and of its store; all of them are turned by the test."""

    def __init__(self) -> None:
        self.store_ms, self.seconds, self.wall_seconds = 1_700_000_000_000, 100.0, 1_700_000_000.0
        self.store = MemoryStore(lambda: self.store_ms)
        self.heartbeat = Heartbeat("me", self.store, self, Switches(), LEASE, self.read_keys)
        self.unread = 0.0  # passes before the next reading of the wall clock

    async def read_keys(self) -> None: ...

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> float:
        if self.unread:
            unread, self.unread = self.unread, 0.0
            self.later(unread)
        return self.wall_seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def later(self, seconds: float, monotonic: float | None = None, wall: float | None = None) -> None:
        """Time passes at the store; here too, unless something else is said."""
        self.store_ms += round(1000 * seconds)
        self.seconds += seconds if monotonic is None else monotonic
        self.wall_seconds += seconds if wall is None else wall


def test_a_lease_ends_before_that_of_the_store() -> None:
    async def story() -> None:
        machine = Machine()
        assert not machine.heartbeat.is_fresh()
        await machine.heartbeat.beat()
        machine.later((1 - MARGIN) * LEASE - 0.01)
        assert machine.heartbeat.is_fresh()
        machine.later(0.02)
        assert not machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() == machine.store_ms

    run(story())


@pytest.mark.parametrize(
    ("monotonic", "wall"),
    [(0.0, 8.0), (0.0, 1.0), (-3600.0, 1.0), (3600.0, 1.0), (1.0, 3600.0), (1.0, -3600.0), (0.9, 1.0), (3.0, 1.0)],
)
def test_a_clock_that_jumps_ends_the_lease_and_stops_the_time_until_the_store_is_heard(
    monotonic: float, wall: float
) -> None:
    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        before = machine.heartbeat.now()
        machine.later(1.0, monotonic, wall)
        assert not machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() == before
        await machine.heartbeat.beat()
        assert machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() == machine.store_ms
        machine.later(LEASE)
        assert not machine.heartbeat.is_fresh()  # also when the clock went back: the old lease counts for nothing

    run(story())


def test_a_jump_that_is_not_noticed_is_within_the_margin() -> None:
    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        nap = 0.9 * LONGEST_JUMP * LEASE
        machine.later(nap, monotonic=0.0)
        assert machine.heartbeat.is_fresh()
        machine.later(LEASE - nap)  # the store's record of the lease ends now
        assert not machine.heartbeat.is_fresh()

    run(story())


def test_a_pause_between_two_readings_is_no_jump() -> None:
    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        machine.unread = 1.0
        assert machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() == machine.store_ms

    run(story())


def test_a_sleep_while_the_heartbeat_is_under_way_is_noticed() -> None:
    async def story() -> None:
        machine = Machine()
        answer = machine.store.heartbeat

        async def slept(*arguments: object) -> object:
            beat = await answer(*arguments)  # type: ignore[arg-type]
            machine.later(2 * LEASE, monotonic=0.0)
            return beat

        machine.store.heartbeat = slept  # type: ignore[method-assign,assignment]
        await machine.heartbeat.beat()
        assert not machine.heartbeat.is_fresh()

    run(story())


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_the_heartbeat_is_under_way_moves_no_time(
    jump: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        before, answer = machine.heartbeat.now(), machine.store.heartbeat

        async def set_meanwhile(*arguments: object) -> object:
            beat = await answer(*arguments)  # type: ignore[arg-type]
            machine.seconds += jump
            return beat

        machine.store.heartbeat = set_meanwhile  # type: ignore[method-assign,assignment]
        await machine.heartbeat.beat()
        assert not machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() == before
        assert not caplog.records

    run(story())


def test_a_server_that_was_far_ahead_goes_back() -> None:
    """Both clocks of its machine were ahead by a day: nothing shows that before the next heartbeat."""

    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        machine.seconds += 86_400
        machine.wall_seconds += 86_400
        assert not machine.heartbeat.is_fresh()
        assert machine.heartbeat.now() > machine.store_ms + 86_000_000
        assert await machine.heartbeat.measured() == machine.store_ms

    run(story())


def test_a_store_that_has_lost_operations_is_not_trusted() -> None:
    """It would number a new kill switch like one that is obeyed already, and no server would obey it."""

    async def story() -> None:
        machine = Machine()
        for _ in range(3):
            await machine.store.add_operation("t", 0, OperationKind.KILL, '{"why": ""}')
        await machine.heartbeat.beat()
        assert machine.heartbeat.switches.acknowledged == 3
        machine.store.done.pop()
        machine.later(LEASE)
        with pytest.raises(StoreUnavailableError, match="operation 3 is obeyed here, but the store has only 2"):
            await machine.heartbeat.beat()
        assert not machine.heartbeat.is_fresh()
        await machine.heartbeat.attempt()
        assert "it lost some" in str(machine.heartbeat.failing)

    run(story())


def test_time_does_not_go_back_because_an_answer_came_late() -> None:
    async def story() -> None:
        machine = Machine()
        await machine.heartbeat.beat()
        answer = machine.store.heartbeat

        async def late(*arguments: object) -> object:
            beat = await answer(*arguments)  # type: ignore[arg-type]
            machine.later(2.0)
            return beat

        machine.store.heartbeat = late  # type: ignore[method-assign,assignment]
        machine.later(1.0)
        before = machine.heartbeat.now()
        await machine.heartbeat.beat()
        assert machine.heartbeat.now() == before
        machine.later(2.5)
        assert before < machine.heartbeat.now() <= machine.store_ms

    run(story())


async def click(server: Server, page: RankAnswer) -> FeedbackAnswer:
    calls = [FeedbackCall(token=page.token, clicks=page.ranking[:1])]
    (answer,), _ = await asyncio.gather(server.feedback(T, calls), written(server))
    assert isinstance(answer, FeedbackAnswer)
    return answer


def test_a_leap_of_the_stores_clock_is_not_followed(tmp_path: Path) -> None:
    """PostgreSQL's clock is ten minutes ahead for some seconds. No window of the future is closed: afterwards reports
    are accepted as before, and nothing that was acknowledged is lost."""

    async def test() -> None:
        h, leap = House(tmp_path, window_seconds=60, freshness_seconds=5), 0
        store = MemoryStore(lambda: h.now + leap)
        server = Server(h.settings, store, h, "one")
        await server.start(loops=False)
        pages = [await server.rank(T, RankCall(context="c", base_ranking=BASE, k=3)) for _ in range(4)]
        assert (await click(server, pages[0])).accepted
        leap = 600_000
        for _ in range(8):
            h.now += 1000
            await server.heartbeat.attempt()
            with contextlib.suppress(StoreUnavailableError):
                await server.closer.close_due(everything=True)
            assert server.now() <= h.now + 1000
        assert "leapt ahead" in str(server.not_ready())
        assert (await server.rank(T, RankCall(context="c", base_ranking=BASE, k=3))).mode == "off"
        leap = 0
        h.now += 1000
        await server.heartbeat.attempt()
        assert server.not_ready() is None
        for page in pages[1:]:
            assert (await click(server, page)).accepted
        later = await server.rank(T, RankCall(context="c", base_ranking=BASE, k=3))
        assert (later.mode, (await click(server, later)).accepted) == ("live", True)
        h.now += 61_000
        await server.heartbeat.attempt()
        await server.closer.close_due(everything=True)
        fold = server.contexts.loaded(T, "c").fold  # type: ignore[union-attr]
        assert sum(tally[2] for tally in fold.tallies) == 5
        await server.stop()

    run(test())


def test_a_server_does_not_start_by_a_clock_that_is_ahead(tmp_path: Path) -> None:
    """PostgreSQL's clock is ten minutes ahead while a server starts, which has never heard it before. Its own clock
    tells it: nothing is closed, it leaves no trace that others would wait for, and starts when the clock is right."""

    async def test() -> None:
        h, leap = House(tmp_path, window_seconds=60, freshness_seconds=5), 0
        store = MemoryStore(lambda: h.now + leap)
        one = Server(h.settings, store, h, "one")
        await one.start(loops=False)
        page = await one.rank(T, RankCall(context="c", base_ranking=BASE, k=3))
        await one.stop()
        leap = 600_000
        with pytest.raises(StoreError, match="its clock has leapt ahead by 600 s"):
            await Server(h.settings, store, h, "two").start(loops=False)
        leap = 0
        h.now += 1000
        assert not await store.servers()
        three = Server(h.settings, store, h, "three")
        await three.start(loops=False)
        assert (await click(three, page)).accepted
        await three.stop()

    run(test())


class Hurrying(House):
    """Time passes while somebody waits."""

    async def sleep(self, seconds: float) -> None:
        self.now += round(1000 * seconds)
        await asyncio.sleep(0)


def test_a_kill_switch_waits_for_a_lease_that_the_store_ends_too_early(tmp_path: Path) -> None:
    """PostgreSQL's clock leaps by less than is noticed. By it the lease of a server that is cut off has run out, by the
    server's own clock it has not: no page may be explored there when the switch returns."""

    async def test() -> None:
        h, leap = Hurrying(tmp_path, freshness_seconds=5), 0
        store, call = MemoryStore(lambda: h.now + leap), RankCall(context="c", base_ranking=BASE, k=3)
        one, two = servers = [Server(h.settings, store, h, name) for name in ("one", "two")]
        for server in servers:
            await server.start(loops=False)
            assert (await server.rank(T, call)).mode == "live"
        leap = 6000
        assert (await two.rank(T, call)).mode == "live"
        assert (await one.kill(T, "c", True, "a test")).on
        assert [(await server.rank(T, call)).mode for server in servers] == ["off", "off"]
        for server in servers:
            await server.heartbeat.attempt()
            await server.stop()

    run(test())
