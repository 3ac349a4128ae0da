"""What names an item goes; pages without it and what is known of other items stay."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from saferank import saved_state
from saferank.service.clock import SystemClock
from saferank.service.commands.forgetting import NotForgottenError
from saferank.service.commands.forgetting_items import ForgottenItem, forget_item
from saferank.service.commands.without_item import DELETED
from saferank.service.engine import Engine
from saferank.service.knowledge.catalogues import unpack_catalogue
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.publications import read_head, read_parts, restored
from saferank.service.protocol.contexts import terms_of
from saferank.service.queries.replay import verify
from saferank.service.queries.replay_report import ReplayReport
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackCall, RankCall
from saferank.store.backup.copying import backup, restore
from saferank.store.contract import AlarmRow, ContextRow, Lease, Publication, StoreError
from saferank.store.embedded.store import SqliteStore
from saferank.store.opening import open_store
from saferank.store.page_record import unpacked
from saferank.store.tables import CopiedStore
from tests.postgres_process import PostgresProcess
from tests.service.engine_harness import House, T, run

ITEM = "secret-item"
BASE, CANDIDATES = ["alpha", ITEM, "gamma", "delta"], ["xray", "yankee", "zulu"]
OTHERS = [name for name in (*BASE, *CANDIDATES) if name != ITEM]
POLICY: dict[str, Any] = {"policy": "safe-draw", "rule": "anytime:0.2"}
Opened = Callable[[], CopiedStore]


async def traffic(h: House, rounds: int = 40) -> None:
    """Two contexts with the item, one without; gamma is clicked more often than alpha."""
    for number in range(rounds):
        for context, base in (("c", BASE), ("d", BASE), ("free", ["alpha", "gamma", "delta"])):
            page = await h.rank(context, base_ranking=base, candidates=CANDIDATES, k=2, session_id=f"s{number}")
            clicks = [name for name in page.ranking if name == "gamma"]
            await h.accept(page, *clicks, event_id=f"{context}-{number}")
        await h.later(4)


def filled(folder: Path, more: Callable[[House], Any] | None = None, **settings: Any) -> None:
    async def fill() -> None:
        house = House(folder, snapshot_every=10, **{**POLICY, **settings})
        await house.start()
        await traffic(house)
        await house.close()
        for context in ("c", "d"):
            number = (await house.server.known_context(T, context)).number
            await house.store.add_alarm(AlarmRow(house.now, number, "exchange_share", f"on pages {ITEM!r} does"))
        if more is not None:
            await more(house)
        await house.stop()

    run(fill())


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresProcess]:
    process = PostgresProcess()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    filled(folder / "store")
    asyncio.run(backup(open_store(folder / "store", readonly=True), folder / "file"))
    return folder


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, store_folder: Path) -> Opened:
    """The same traffic in a store of either kind, which no server uses."""
    name = request.node.name.partition("[")[0][:45]
    address = tmp_path / "store" if request.param == "sqlite" else request.getfixturevalue("postgres").database(name)
    asyncio.run(restore(store_folder / "file", open_store(address)))
    return lambda: open_store(address)


async def rows_of(store: CopiedStore) -> dict[str, list[Any]]:
    await store.open()
    try:
        found: dict[str, list[Any]] = {}
        async for chunk in store.dump():
            found.setdefault(chunk.table, []).extend(chunk.rows)
        return found
    finally:
        await store.close()


def texts(table: str, row: tuple[Any, ...]) -> str:
    """Everything that a row says, unpacked."""
    if table == "catalogue":
        return repr(unpack_catalogue(row[1]))
    if table == "page":
        return repr(unpacked(row[3]))
    if table in ("publication", "snapshot"):
        return repr([read_head(row[4]), *(saved_state.from_bytes(part.learner)[0] for part in read_parts(row[4]))])
    return repr(row)


def naming(rows: dict[str, list[Any]], item: str = ITEM) -> dict[str, int]:
    """By table: rows that name the item."""
    found = {table: sum(item in texts(table, row) for row in rows[table]) for table in rows}
    return {table: count for table, count in found.items() if count}


def folds(rows: dict[str, list[Any]]) -> dict[str, Fold]:
    """The newest publication of each context, by name."""
    contexts = {row[0]: ContextRow(*row[:5]) for row in rows["context"]}
    newest = [Publication(*row[:5]) for row in rows["publication"]]
    return {contexts[row.context].name: restored(row, terms_of(contexts[row.context])) for row in newest}


def duels(fold: Fold, k: int = 2) -> dict[tuple[str, str], Any]:
    """What was learnt of each pair of items but the one that goes."""
    learner = fold.knowledge[k].learner
    return {(i, j): learner.duel(i, j) for i in OTHERS for j in OTHERS if i < j}


def certain(fold: Fold, k: int = 2) -> set[tuple[str, str]]:
    known = fold.knowledge[k]
    return {pair[:2] for pair in known.named(known.certified.pairs) if ITEM not in pair[:2]}


def replayed(store: CopiedStore) -> ReplayReport:
    return asyncio.run(verify(store))


def test_nothing_names_the_item_afterwards_and_others_are_known_as_before(opened: Opened) -> None:
    before = asyncio.run(rows_of(opened()))
    assert naming(before).keys() == {"page", "catalogue", "publication", "snapshot", "version", "alarm"}
    assert certain(folds(before)["c"]) or certain(folds(before)["d"])
    told = asyncio.run(forget_item(opened(), T, ITEM))
    after = asyncio.run(rows_of(opened()))
    assert naming(after) == {}
    gone = naming(before)["page"]
    assert (told.contexts, told.gone.pages, told.gone.events) == (2, gone, gone)
    assert (told.catalogues, told.versions, told.alarms) == (1, naming(before)["version"], 2)
    assert (told.shared, told.begun) == (0, [])
    assert told.sentences()[0].startswith(f"removed the item from 2 contexts: {gone} pages, {gone} event ids, 1 cat")
    assert len(after["page"]) == len(before["page"]) - gone
    for name in ("c", "d"):
        assert duels(folds(after)[name]) == duels(folds(before)[name])
        assert certain(folds(before)[name]) <= certain(folds(after)[name])
    (same,) = [row[0] for row in before["context"] if row[2] == "free"]
    for table in ("publication", "version", "snapshot"):
        assert [row for row in after[table] if row[0] == same] == [row for row in before[table] if row[0] == same]
    report = replayed(opened())
    assert (report.pruned, report.contexts, report.lost, report.publications) == (2, 3, 0, 3)


def test_earlier_versions_keep_their_places_and_certificates_of_others(opened: Opened) -> None:
    before = asyncio.run(rows_of(opened()))["version"]
    asyncio.run(forget_item(opened(), T, ITEM))
    after = {row[:2]: row for row in asyncio.run(rows_of(opened()))["version"]}
    for row in before:
        kept = after[row[:2]]
        assert json.loads(kept[4]) == [DELETED if name == ITEM else name for name in json.loads(row[4])]
        for kind in ("gained", "lost"):
            pairs = json.loads(row[6])[kind]
            assert json.loads(kept[6])[kind] == [pair for pair in pairs if ITEM not in pair]
    new = [row for key, row in after.items() if key not in {row[:2] for row in before}]
    assert [(row[3], row[7]) for row in new] == [("restart", "an item was deleted (saferank forget)")] * 2


def test_a_server_learns_on_afterwards(opened: Opened) -> None:
    async def serve() -> None:
        engine = Engine(Settings(store="unused", **POLICY), opened(), SystemClock())
        await engine.start(loops=False)
        writing = asyncio.create_task(engine.server.writer.run())
        for name in ("c", "d", "free", "new"):
            call = RankCall(context=name, base_ranking=OTHERS[:3], candidates=OTHERS[3:], k=2, session_id="ann")
            page = await engine.rank(T, call)
            await engine.feedback(T, [FeedbackCall(token=page.token, clicks=page.ranking[:1])])
        await engine.flush()
        view = await engine.context(T, "c")
        assert ITEM not in view.leader and len(view.leader) == 2
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await engine.stop()

    asyncio.run(forget_item(opened(), T, ITEM))
    run(serve())
    assert naming(asyncio.run(rows_of(opened()))) == {}
    assert (replayed(opened()).contexts, replayed(opened()).lost) == (4, 0)


def test_clicks_after_it_are_learnt(tmp_path: Path) -> None:
    filled(tmp_path)
    asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))

    async def story() -> None:
        house = House(tmp_path, **POLICY)
        house.now += 600_000
        await house.start()
        for number in range(10):
            page = await house.rank("c", base_ranking=OTHERS[:3], candidates=OTHERS[3:], k=2, session_id=f"n{number}")
            await house.accept(page, page.ranking[0])
            await house.later(4)
        await house.close()
        assert house.fold("c").learnt > before
        report = await house.stop_and_replay()
        assert (report.pruned, report.lost) == (2, 0)

    before = folds(asyncio.run(rows_of(SqliteStore(tmp_path))))["c"].learnt
    run(story())


def test_one_context_only(opened: Opened) -> None:
    told = asyncio.run(forget_item(opened(), T, ITEM, "c"))
    assert (told.contexts, told.catalogues, told.shared) == (1, 0, 1)
    assert told.sentences()[1] == "1 catalogues that name it stay: other contexts or tenants use them"
    rows = asyncio.run(rows_of(opened()))
    names = {row[0]: row[2] for row in rows["context"]}
    for table, place in (("page", 1), ("publication", 0), ("snapshot", 0), ("version", 0), ("alarm", 1)):
        assert {names[row[place]] for row in rows[table] if ITEM in texts(table, row)} == {"d"}
    assert replayed(opened()).pruned == 1
    with pytest.raises(NotForgottenError, match="nothing named 'secret-item' was found; 1 catalogues of other"):
        asyncio.run(forget_item(opened(), T, ITEM, "c"))
    assert asyncio.run(forget_item(opened(), T, ITEM)).catalogues == 1
    assert naming(asyncio.run(rows_of(opened()))) == {} and replayed(opened()).pruned == 2


def test_mistakes_change_nothing(opened: Opened) -> None:
    before = asyncio.run(rows_of(opened()))
    with pytest.raises(NotForgottenError, match=r"nothing named 'secret' was found$"):  # a part of a name is no name
        asyncio.run(forget_item(opened(), T, "secret"))
    with pytest.raises(NotForgottenError, match=f"tenant 'other' has no contexts; tenants that have some: {T}"):
        asyncio.run(forget_item(opened(), "other", ITEM))
    with pytest.raises(NotForgottenError, match=f"tenant '{T}' has no context 'nowhere'"):
        asyncio.run(forget_item(opened(), T, ITEM, "nowhere"))
    with pytest.raises(NotForgottenError, match="nothing named 'secret-item' was found"):
        asyncio.run(forget_item(opened(), T, ITEM, "free"))
    assert asyncio.run(rows_of(opened())) == before and replayed(opened()).pruned == 0


def test_a_store_in_use_is_refused(opened: Opened) -> None:
    async def story() -> None:
        store = opened()
        await store.open()
        try:
            await store.heartbeat("alive", 0, 60_000)
            with pytest.raises((NotForgottenError, StoreError), match=r"1 servers use this store|another server"):
                await forget_item(opened(), T, ITEM)
            await store.leave("alive")
        finally:
            await store.close()

    asyncio.run(story())
    assert naming(asyncio.run(rows_of(opened())))


def test_the_files_do_not_hold_the_name(tmp_path: Path) -> None:
    def names(text: str) -> list[str]:
        return [file.name for file in tmp_path.iterdir() if text.encode() in file.read_bytes()]

    filled(tmp_path)
    assert names(ITEM) == ["log.sqlite3"]
    asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    assert names(ITEM) == [] and names("gamma") == ["log.sqlite3"]


class Interrupted(SqliteStore):
    """A store that fails at one of the calls."""

    at = ""

    async def delete_pages(self, *arguments: Any) -> Any:
        return await self._unless("delete_pages", super().delete_pages(*arguments))

    async def delete_catalogues(self, *arguments: Any) -> Any:
        return await self._unless("delete_catalogues", super().delete_catalogues(*arguments))

    async def scrub(self) -> None:
        await self._unless("scrub", super().scrub())

    async def _unless(self, name: str, call: Any) -> Any:
        if self.at == name:
            call.close()
            raise StoreError("power is lost")
        return await call


@pytest.mark.parametrize("at", ["delete_pages", "delete_catalogues", "scrub"])
def test_after_an_interruption_replay_passes_and_the_next_call_finishes(
    tmp_path: Path, store_folder: Path, at: str
) -> None:
    asyncio.run(restore(store_folder / "file", SqliteStore(tmp_path)))
    store = Interrupted(tmp_path)
    store.at = at
    with pytest.raises(StoreError, match="power is lost"):
        asyncio.run(forget_item(store, T, ITEM))
    assert replayed(SqliteStore(tmp_path)).lost == 0
    if at == "scrub":
        with pytest.raises(NotForgottenError, match="nothing named"):
            asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    else:
        asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    assert naming(asyncio.run(rows_of(SqliteStore(tmp_path)))) == {}
    assert not any(ITEM.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert replayed(SqliteStore(tmp_path)).lost == 0


class Joined(SqliteStore):
    """A store that another server comes to when pages are about to be deleted."""

    async def rewrite(self, lease: Lease, *arguments: Any) -> None:
        await super().rewrite(lease, *arguments)
        await self.heartbeat("new", 0, 60_000)


def test_a_server_that_is_started_meanwhile_ends_it(tmp_path: Path, store_folder: Path) -> None:
    asyncio.run(restore(store_folder / "file", SqliteStore(tmp_path)))
    with pytest.raises(NotForgottenError, match="a server was started meanwhile; some may be left: stop it"):
        asyncio.run(forget_item(Joined(tmp_path), T, ITEM))
    assert replayed(SqliteStore(tmp_path)).lost == 0


def test_open_pages_that_name_it_are_refused_and_others_are_learnt_later(tmp_path: Path) -> None:
    pages = {}

    async def two_more(h: House) -> None:
        calls = {"c": BASE, "free": ["alpha", "gamma", "delta"]}
        for context, base in calls.items():
            pages[context] = await h.rank(context, base_ranking=base, candidates=[], k=2, session_id="last")
            await h.accept(pages[context], pages[context].ranking[0], event_id=f"last-{context}")

    filled(tmp_path, two_more)
    with pytest.raises(NotForgottenError, match="1 of the pages in context 'c' have not been learnt from yet: start"):
        asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    assert asyncio.run(forget_item(SqliteStore(tmp_path), T, "zulu", "free")).contexts == 1

    async def start_and_stop() -> None:
        house = House(tmp_path, **POLICY)
        house.now += 600_000
        await house.start()
        await house.stop()

    run(start_and_stop())
    assert asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM)).contexts == 2
    assert naming(asyncio.run(rows_of(SqliteStore(tmp_path)))) == {}
    assert replayed(SqliteStore(tmp_path)).lost == 0


def test_a_context_with_too_few_items_left_begins_again(tmp_path: Path) -> None:
    async def whole_pages(h: House) -> None:
        for number in range(5):
            page = await h.rank("small", base_ranking=["alpha", ITEM], candidates=[], k=2, session_id=f"s{number}")
            await h.accept(page, ITEM)
        await h.close()

    filled(tmp_path, whole_pages)
    told = asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    assert (told.contexts, told.begun) == (3, ["small"])
    assert "these contexts begin to learn again, at least for a page size: small" in told.sentences()
    assert naming(asyncio.run(rows_of(SqliteStore(tmp_path)))) == {}
    assert replayed(SqliteStore(tmp_path)).lost == 0


def test_a_context_that_has_no_pages_left_is_opened_without_it(tmp_path: Path) -> None:
    async def story() -> None:
        house = House(tmp_path, **POLICY)
        await house.start()
        await house.rank("c", base_ranking=BASE, candidates=CANDIDATES, k=4)
        house.server.writer.pages.clear()  # a crash takes the page, not the context
        await house.stop()

    run(story())
    rows = asyncio.run(rows_of(SqliteStore(tmp_path)))
    assert "page" not in rows or not rows["page"]
    told = asyncio.run(forget_item(SqliteStore(tmp_path), T, ITEM))
    assert told == ForgottenItem(contexts=1, catalogues=1)
    ((_, body),) = asyncio.run(rows_of(SqliteStore(tmp_path)))["catalogue"]
    assert unpack_catalogue(body) == (["alpha", "gamma", "delta", "xray"], CANDIDATES)
    assert replayed(SqliteStore(tmp_path)).contexts == 1
