"""A store that the first edition wrote (640 pages of three contexts, one rolled back, one killed) is taken over.

``store.sqlite3.xz`` was made by the code of the first edition; ``facts.json`` is what its state was at the end.
"""

import asyncio
import json
import lzma
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from saferank.service.identifiers import impression_id, issued_at
from saferank.service.knowledge import fold as fold_module
from saferank.service.knowledge.catalogues import Catalogues
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.lessons import Laid, Lessons
from saferank.service.knowledge.visits.votes import Votes
from saferank.service.protocol.contexts import Contexts, Limits
from saferank.service.queries.replay import verify
from saferank.store.contract import SHARDS, Outcome, StoreError
from saferank.store.embedded.file import FILE_NAME
from saferank.store.embedded.store import SqliteStore
from saferank.store.first_edition.migrating import Migrated, migrate
from saferank.store.opening import open_store
from saferank.store.page_record import unpacked
from saferank.store.past import LoadableStore
from tests.service.engine_harness import House, T, run
from tests.store.stores import report, said

HERE = Path(__file__).parent
FACTS: dict[str, Any] = json.loads((HERE / "facts.json").read_text())
OPEN = impression_id(FACTS["open page"]) or b""
BEFORE = issued_at(OPEN) - 1
"""Until then all pages were closed."""

END = 10**13


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(lzma.decompress((HERE / "store.sqlite3.xz").read_bytes()))
    return folder


def migrated(old: Path, address: str | Path) -> Migrated:
    return asyncio.run(migrate(old, open_store(address)))


async def folded(store: LoadableStore) -> dict[str, Fold]:
    """The knowledge that the first server will have."""
    found = {}
    for row in await store.contexts():
        fold = await Contexts(store, Catalogues(), Limits(9)).fold_of(row, None)
        fold.fold(await store.pages_between(row.id, 0, BEFORE), BEFORE)
        found[row.name] = fold
    return found


def inspect(address: str | Path, look: Callable[[LoadableStore], Any]) -> None:
    async def within() -> None:
        store = open_store(address)
        await store.open()
        try:
            await look(store)
        finally:
            await store.close()

    asyncio.run(within())


def every_vote(votes: Votes, laid: Laid, lessons: Lessons, items: Sequence[object]) -> Laid:
    """The first edition counted every comparison of a visitor."""
    return laid


def check(address: str | Path) -> None:
    async def look(store: LoadableStore) -> None:
        with pytest.MonkeyPatch.context() as first_edition:
            first_edition.setattr(fold_module, "without_repeats", every_vote)
            folds = await folded(store)
        for name in ("shelf", "undone"):
            fold, facts = folds[name], FACTS[name]
            assert fold.pages == facts["pages"] - facts["open"]
            learner = fold.knowledge[3].learner
            for pair, duel in facts["duels"].items():
                assert list(learner.duel(*pair.split(","))) == duel, pair
            assert len(fold.knowledge[3].certified.pairs) == facts["certificates"]
        assert folds["undone"].leader() == tuple(FACTS["undone"]["leader"])
        for name, fold in (await folded(store)).items():  # a visitor votes once on a pair by now
            for better, worse in (pair.split(",") for pair in FACTS.get(name, {}).get("duels", {})):
                now, before = (found.knowledge[3].learner.duel(better, worse)[1] for found in (fold, folds[name]))
                assert 0 < now <= before or before == 0
        (switch,) = await store.operations(0)
        assert (switch.kind, switch.context, json.loads(switch.body)) == (1, 3, {"why": "complaints"})
        assert list(await store.due(range(SHARDS), 0, END)) == [1, 2, 3]

    inspect(address, look)


def test_sqlite_takes_it_over(old: Path, tmp_path: Path) -> None:
    before = (old / FILE_NAME).read_bytes()
    result = migrated(old, tmp_path / "new")
    assert result[:2] == (3, 644)
    assert result.switches == 1
    assert "3 contexts, 644 pages" in result.sentences()[0]
    check(tmp_path / "new")
    assert (old / FILE_NAME).read_bytes() == before


def test_postgres_takes_it_over(old: Path, postgres_address: str) -> None:
    migrated(old, postgres_address)
    check(postgres_address)


def test_pages_event_ids_and_visitors_go_on(old: Path, tmp_path: Path) -> None:
    migrated(old, tmp_path / "new")
    with closing(sqlite3.connect(old / FILE_NAME)) as connection:
        ((key,),) = connection.execute("SELECT value FROM meta WHERE name = 'session_key'")
        tenant, event_id, digest = connection.execute("SELECT tenant, event_id, digest FROM delivery").fetchone()

    async def look(store: LoadableStore) -> None:
        assert await store.meta("session_key") == key
        page = await store.page(OPEN)
        assert page is not None
        record = unpacked(page.record)
        assert (page.clicks, record.k, len(record.row), record.tenant) == (2, 3, 4, "default")
        again = report(page, 2, event_id, tenant)._replace(digest=digest)
        assert await said(store, again, report(page, 4)) == [Outcome.DUPLICATE, Outcome.ACCEPTED]

    inspect(tmp_path / "new", look)


def test_the_first_schema_is_read_as_well(old: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(old / FILE_NAME)) as connection:
        connection.executescript("DROP INDEX event_rare; ALTER TABLE leader DROP COLUMN why; PRAGMA user_version = 1")
    assert migrated(old, tmp_path / "new").pages == 644


def test_what_cannot_be_converted_is_named(old: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file"):
        migrated(tmp_path / "missing", tmp_path / "new")
    migrated(old, tmp_path / "new")
    with pytest.raises(StoreError, match="is not empty; name another store"):
        migrated(old, tmp_path / "new")
    with pytest.raises(StoreError, match="is no store of the first edition"):
        migrated(tmp_path / "new", tmp_path / "newer")
    with closing(sqlite3.connect(old / FILE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(StoreError, match="only schemas 1 and 2"):
        migrated(old, tmp_path / "newer")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET body = x'07' WHERE kind = 1",
        "DELETE FROM event WHERE kind = 3",
        "UPDATE event SET body = x'ff' WHERE kind = 8",
        "DELETE FROM leader",
        "UPDATE event SET kind = 77 WHERE kind = 5",
    ],
)
def test_a_damaged_log_is_named(old: Path, tmp_path: Path, damage: str) -> None:
    with closing(sqlite3.connect(old / FILE_NAME)) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(StoreError, match="the log is damaged"):
        migrated(old, tmp_path / "new")


def test_a_reset_gives_a_context_the_present_terms(old: Path, tmp_path: Path) -> None:
    migrated(old, tmp_path / "new")

    async def test() -> None:
        h = House(tmp_path / "new", policy="safe-draw", rule="anytime:1e-5", certificate_days=7)
        h.now = END
        await h.start()
        before = await h.engine.context(T, "shelf")
        assert (before.policy, before.certificate_days) == ("kl-ucb-br", 0)
        after = await h.engine.reset(T, "shelf", "the present terms")
        assert (after.policy, after.rule, after.certificate_days) == ("safe-draw", "anytime:1e-5", 7)
        await h.later(1)
        page = await h.rank("shelf", base_ranking=after.base_ranking, candidates=[])
        assert h.record(page).policy == "safe-draw"
        assert (await h.engine.context(T, "undone")).policy == "kl-ucb-br"
        await h.stop()
        found = await verify(SqliteStore(tmp_path / "new", readonly=True))
        assert (found.resets, found.contexts) == (1, 3)

    run(test())
