"""What every store keeps of the contract, written once."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from saferank.store.contract import (
    CATALOGUE_MS,
    MOST_EVENT_IDS,
    SHARDS,
    AlarmRow,
    CatalogueRow,
    Group,
    OperationKind,
    Outcome,
    PageRow,
    StaleLeaseError,
    Store,
)
from saferank.store.page_record import CATALOGUE_PLACE
from tests.store.stores import (
    Kind,
    alarms_of,
    connected,
    lease_of,
    now_of,
    opened,
    over_store,
    page,
    publication,
    report,
    said,
    version,
)

ACCEPTED, DUPLICATE, LATE, CONFLICT = Outcome.ACCEPTED, Outcome.DUPLICATE, Outcome.LATE, Outcome.CONFLICT


# --- contexts and facts ---


@over_store
async def test_a_context_is_opened_once_and_not_beyond_the_bound_of_its_tenant(store: Store) -> None:
    first = await store.open_context("t", "one ö", '{"k": 1}', 2)
    assert first is not None
    assert first == await store.open_context("t", "one ö", '{"k": 2}', 0) == await store.find_context("t", "one ö")
    second = await store.open_context("t", "two", "{}", 2)
    assert await store.open_context("t", "three", "{}", 2) is None
    other = await store.open_context("u", "one ö", "{}", 1)
    assert [first, second, other] == list(await store.contexts())
    assert [row.id for row in await store.contexts()] == [1, 2, 3]
    assert await store.find_context("u", "two") is None
    assert [await store.context(number) for number in (1, 3, 4)] == [first, other, None]


@over_store
async def test_catalogues_are_kept_once(store: Store) -> None:
    await store.write(Group(catalogues=[CatalogueRow(b"d" * 16, b"body"), CatalogueRow(b"e" * 16, b"")]))
    await store.write(Group(catalogues=[CatalogueRow(b"d" * 16, b"other")]))
    assert [await store.catalogue(digest * 16) for digest in (b"d", b"e", b"f")] == [b"body", b"", None]


@over_store
async def test_catalogues_that_nothing_names_are_deleted_when_they_are_old(store: Store) -> None:
    digests = [letter * 16 for letter in (b"c", b"p", b"q", b"n")]  # of a context, of pages, of nothing
    await store.write(Group(catalogues=[CatalogueRow(digest, b"body") for digest in digests]))
    terms = json.dumps({"catalogue": digests[0].hex()})
    row, now = await store.open_context("t", "c", terms, 10), await now_of(store)
    assert row is not None
    pages = [
        page(row.id, now)._replace(record=bytes(CATALOGUE_PLACE - 1) + digest + b"rest") for digest in digests[1:3]
    ]
    pages[1] = pages[1]._replace(impression=(now + 3 * CATALOGUE_MS).to_bytes(6, "big") + bytes(10), closes_at=10**14)
    await store.write(Group(pages=pages))
    assert await store.prune_catalogues(now - 1000, 10) == 0
    assert await store.prune_catalogues(now + 1, 1) == 1
    assert await store.prune_catalogues(now + 1, 10) == 1  # a page so much younger would have written it again
    left = [await store.catalogue(digest) for digest in digests]
    assert left == [b"body", b"body", None, None]
    await store.write(Group(catalogues=[CatalogueRow(digests[3], b"body")]))
    assert await store.catalogue(digests[3]) == b"body"


@over_store
async def test_a_store_is_made_with_secrets(store: Store) -> None:
    assert len(await store.meta("session_key") or b"") == 32
    assert (await store.meta("token_keys") or b"").startswith(b"{")
    assert await store.meta("nothing") is None


@over_store
async def test_a_fact_is_set_and_set_again(store: Store) -> None:
    for value in (b"1", b"", bytes(range(256))):
        await store.put_meta("forgotten/3", value)
        assert await store.meta("forgotten/3") == value
    await store.put_meta("token_keys", b"{}")
    assert await store.meta("token_keys") == b"{}" and len(await store.meta("session_key") or b"") == 32


# --- pages and reports ---


@over_store
async def test_a_page_keeps_a_bounded_number_of_event_ids_and_loses_no_click(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row, other = page(context, now), page(context, now)
    first = await said(store, *(report(row, 1, f"a{number}") for number in range(MOST_EVENT_IDS - 2)))
    assert first == [ACCEPTED] * (MOST_EVENT_IDS - 2)
    assert await said(store, *(report(row, 1, f"b{number}") for number in range(4))) == [ACCEPTED] * 2 + [DUPLICATE] * 2
    flood = [report(row, 1, f"c{number}") for number in range(500)]
    assert await said(store, *flood) == [DUPLICATE] * 500
    assert await prune_all(store) == MOST_EVENT_IDS

    # what brings a click is kept, and one that only repeats a click of the same group is not
    found = await said(store, report(row, 2, "d"), report(row, 3, "e"), report(row, 4, "f"), report(other, 1, "g"))
    assert found == [ACCEPTED, DUPLICATE, ACCEPTED, ACCEPTED]
    assert await said(store, report(row, 2, "d"), report(row, 1, "d"), report(row, 7, "h")) == [
        DUPLICATE,
        CONFLICT,
        DUPLICATE,
    ]
    assert (await store.page(row.impression) or row).clicks == 7


async def prune_all(store: Store) -> int:
    return await store.prune_events(await now_of(store) + 1, 10_000)


@over_store
async def test_a_click_that_a_refused_report_has_as_well_is_not_lost_beyond_the_bound(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row = page(context, now)
    await said(store, *(report(row, 1, f"a{number}") for number in range(MOST_EVENT_IDS)))
    assert await said(store, report(row, 2, "a0"), report(row, 2, "new")) == [CONFLICT, ACCEPTED]
    assert (await store.page(row.impression) or row).clicks == 3


@over_store
async def test_pages_come_back_as_they_were_written(store: Store) -> None:
    context, other, now = await opened(store), await opened(store, "d"), await now_of(store)
    rows = [page(context, now - 3 * age, clicks=1 << (age % 100)) for age in range(400)]
    apart = page(other, now - 5)
    written = await store.write(Group(pages=[*rows, apart]))
    assert (written.outcomes, written.left_out) == ((), 0)
    assert written.now >= now
    ordered = sorted(rows)
    assert list(await store.pages_between(context, now - 1200, now)) == ordered
    assert list(await store.pages_between(context, now - 6, now - 3)) == [rows[1]]
    assert await store.page(rows[99].impression) == rows[99]
    assert await store.page(b"x" * 16) is None
    assert [row async for some in store.all_pages() for row in some] == sorted([*rows, apart])
    assert [row async for some in store.all_pages(context, ordered[9].impression) for row in some] == ordered[10:]


@over_store
async def test_all_pages_are_read_in_chunks_without_a_seam(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    rows = sorted(page(context, now) for _ in range(2001))
    await store.write(Group(pages=rows))
    assert [row async for some in store.all_pages() for row in some] == rows


@over_store
async def test_clicks_merge_as_sets_up_to_the_hundredth_place(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row = page(context, now)
    assert await said(store, report(row, 0b101)) == [ACCEPTED]
    assert await said(store, report(row, 0b100)) == [DUPLICATE]
    assert await said(store, report(row, 1 << 99), report(row, 1 << 63), report(row, 1 << 63)) == [
        ACCEPTED, ACCEPTED, DUPLICATE,
    ]  # fmt: skip
    assert await store.page(row.impression) == row._replace(clicks=0b101 | 1 << 99 | 1 << 63)


@over_store
async def test_a_report_without_clicks_is_news_if_its_page_is(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row = page(context, now)
    assert await said(store, report(row, 0), report(row, 0)) == [ACCEPTED, DUPLICATE]


@over_store
async def test_a_page_in_the_background_does_not_undo_its_clicks(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    first, second = page(context, now), page(context, now)
    assert await said(store, report(first, 3)) == [ACCEPTED]
    written = await store.write(Group(pages=[first, second], reports=[report(second, 1)]))
    assert (written.outcomes, written.left_out) == ((ACCEPTED,), 0)
    assert await said(store, report(second, 2)) == [ACCEPTED]
    assert list(await store.pages_between(context, now - 1, now)) == [
        first._replace(clicks=3), second._replace(clicks=3),
    ]  # fmt: skip


@over_store
async def test_event_ids_are_repeated_or_contradicted_even_after_their_page_closed(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row, other = page(context, now), page(context, now)
    assert await said(store, report(row, 1, "e"), report(row, 1, "e"), report(row, 2, "e")) == [
        ACCEPTED, DUPLICATE, CONFLICT,
    ]  # fmt: skip
    assert await said(store, report(row, 4, "f"), report(other, 2, "e"), report(other, 1, "e")) == [
        ACCEPTED, ACCEPTED, CONFLICT,
    ]  # fmt: skip
    await store.close_through(await lease_of(store, context), context, now)
    assert await said(store, report(row, 1, "e"), report(row, 2, "e"), report(row, 8, "g"), report(row, 8, "g")) == [
        DUPLICATE, CONFLICT, LATE, LATE,
    ]  # fmt: skip
    assert await store.page(row.impression) == row._replace(clicks=5)
    assert await store.page(other.impression) == other._replace(clicks=2)


@over_store
async def test_any_text_is_an_event_id(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    texts = ['a"b', "a\\b", "{a,b}", "NULL", "null", " ", "ö'%s", "a,b", '\\"']
    reports = [report(page(context, now), 1, text, tenant=text) for text in texts]
    assert await said(store, *reports) == [ACCEPTED] * len(texts)
    assert await said(store, *reports) == [DUPLICATE] * len(texts)


@over_store
async def test_pages_of_closed_windows_are_left_out_and_their_clicks_are_late(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    ended = page(context, now - 9, window=5)  # nobody has closed it
    old, new = page(context, now - 10), page(context, now - 9)
    assert await store.close_through(await lease_of(store, context), context, now - 10) == now - 10
    written = await store.write(Group(pages=[old, new, ended], reports=[report(old, 1), report(ended, 1)]))
    assert (written.outcomes, written.left_out) == ((LATE, LATE), 2)
    assert list(await store.pages_between(context, 0, now)) == [new]


@over_store
async def test_closing_never_goes_back(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    lease = await lease_of(store, context)
    assert [await store.close_through(lease, context, through) for through in (now, now - 5, now + 1)] == [
        now, now, now + 1,
    ]  # fmt: skip


@over_store
async def test_a_group_is_written_completely_or_not_at_all(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row = page(context, now)
    with pytest.raises(KeyError, match="there is no context 77"):
        await store.write(Group(pages=[page(77, now)], reports=[report(row, 1, "e")], catalogues=[
            CatalogueRow(b"d" * 16, b"body")]))  # fmt: skip
    assert await store.page(row.impression) is None
    assert await store.catalogue(b"d" * 16) is None
    assert await said(store, report(row, 2, "e")) == [ACCEPTED]


# --- leases ---


async def holdings(store: Store, names: Sequence[str], rounds: int = 3) -> dict[str, set[int]]:
    """Who holds what after some heartbeats."""
    for _ in range(rounds):
        held = {name: {lease.shard for lease in (await store.heartbeat(name, 0, 60_000)).leases} for name in names}
    return held


@over_store
async def test_shards_are_shared_fairly(store: Store) -> None:
    assert (await holdings(store, ["a"]))["a"] == set(range(SHARDS))
    for names in (["a", "b"], ["a", "b", "c"]):
        held = await holdings(store, names)
        assert sorted(shard for shards in held.values() for shard in shards) == list(range(SHARDS))
        assert max(len(shards) for shards in held.values()) == -(-SHARDS // len(names))
    await store.leave("a")
    held = await holdings(store, ["b", "c"])
    assert {len(shards) for shards in held.values()} == {SHARDS // 2}
    assert [row.server for row in await store.servers()] == ["b", "c"]


@over_store
async def test_a_lease_is_kept_with_its_epoch_and_taken_with_a_new_one(store: Store) -> None:
    first = await store.heartbeat("a", 0, 60_000)
    again = await store.heartbeat("a", 7, 60_000)
    assert [lease[:2] for lease in first.leases] == [lease[:2] for lease in again.leases]
    assert again.lease_until == again.now + 60_000
    assert again.servers == 1
    assert [row[::2] for row in await store.servers()] == [("a", 7)]
    await store.leave("a")
    taken = await store.heartbeat("b", 0, 60_000)
    assert [(old.shard, old.epoch + 1) for old in first.leases] == [lease[:2] for lease in taken.leases]


@over_store
async def test_a_lease_that_ran_out_is_taken_over_and_does_not_hold_any_more(store: Store) -> None:
    context = await opened(store)
    stale = next(lease for lease in (await store.heartbeat("a", 0, 1)).leases if lease.shard == context % SHARDS)
    while await store.servers():
        await asyncio.sleep(0.001)
    assert [row.server for row in await store.servers(600_000)] == ["a"]
    fresh = await lease_of(store, context, "b")
    assert fresh.epoch == stale.epoch + 1
    with pytest.raises(StaleLeaseError):
        await store.close_through(stale, context, 5)
    with pytest.raises(StaleLeaseError):
        await store.publish(stale, publication(context), [version(context, 1)], [AlarmRow(1, context, "k", "d")], True)
    assert (await store.publication(context), await store.versions(context), await alarms_of(store, context)) == (
        None, [], [],
    )  # fmt: skip
    assert await store.close_through(fresh, context, 3) == 3
    await store.publish(fresh, publication(context), [])


@over_store
async def test_a_lease_is_of_one_shard(store: Store) -> None:
    context = await opened(store)
    wrong = (await lease_of(store, context))._replace(shard=context % SHARDS + 1)
    with pytest.raises((StaleLeaseError, AssertionError)):
        await store.close_through(wrong, context, 5)


# --- publishing ---


@over_store
async def test_a_publication_comes_with_its_versions_and_alarms(store: Store) -> None:
    context, other = await opened(store), await opened(store, "other")
    lease = await lease_of(store, context)
    first, second = publication(context), publication(context, 2, 10, bytes(range(256)) * 20)
    alarm = AlarmRow(5, context, "contradiction", "a over b over a")
    await store.publish(lease, first, [version(context, 1), version(context, 2, "because")], [alarm], keep=True)
    await store.publish(lease, second, [version(context, 3)])
    assert await store.publication(context) == second
    assert await store.publication(other) is None
    assert list(await store.versions(context)) == [
        version(context, 1),
        version(context, 2, "because"),
        version(context, 3),
    ]
    assert list(await store.versions(context, 2)) == [version(context, 2, "because"), version(context, 3)]
    await store.add_alarm(alarm._replace(at=6))
    assert list(await alarms_of(store, context)) == [alarm, alarm._replace(at=6)]
    assert list(await store.snapshots(context)) == [first]


@over_store
async def test_alarms_of_all_contexts_come_newest_first(store: Store) -> None:
    one, other = await opened(store), await opened(store, "d")
    rows = [AlarmRow(at, context, "illegal_page", "ä") for at, context in ((5, other), (7, one), (6, other))]
    for row in rows:
        await store.add_alarm(row)
    assert list(await store.newest_alarms(10)) == rows[::-1]
    assert list(await store.newest_alarms(2)) == rows[:0:-1]


@over_store
async def test_publications_of_many_contexts_come_in_one_question(store: Store) -> None:
    numbers = [await opened(store, f"c{place}") for place in range(12)]
    bare = numbers.pop()
    for number in numbers:
        await store.publish(await lease_of(store, number), publication(number, 1), [])
    await store.publish(await lease_of(store, numbers[3]), publication(numbers[3], 2), [])
    found = await store.publications([bare, *reversed(numbers), 999])
    assert list(found) == [await store.publication(number) for number in numbers]
    assert list(await store.publications([])) == []


@over_store
async def test_pages_are_counted_from_a_time_on(store: Store) -> None:
    context, other, now = await opened(store), await opened(store, "d"), await now_of(store)
    await store.write(Group(pages=[*(page(context, now - age) for age in (0, 1, 2)), page(other, now)]))
    assert [await store.count_pages(context, now - age) for age in (0, 1, 2, 3)] == [0, 1, 2, 3]


@over_store
async def test_publications_follow_each_other(store: Store) -> None:
    context = await opened(store)
    lease = await lease_of(store, context)
    first = publication(context)
    await store.publish(lease, first, [version(context, 1)])
    await store.publish(lease, first, [version(context, 1)])  # the answer to the first call was lost
    for wrong in (publication(context, 1, body=b"other"), publication(context, 3)):
        with pytest.raises(StaleLeaseError, match="is not the next"):
            await store.publish(lease, wrong, [version(context, 2)])
    assert await store.publication(context) == first
    assert len(await store.versions(context)) == 1


@over_store
async def test_publications_that_are_kept_stay_in_order(store: Store) -> None:
    context = await opened(store)
    lease = await lease_of(store, context)
    rows = [publication(context, number, 10 * number) for number in (1, 2, 3, 4)]
    for row in rows:
        await store.publish(lease, row, [], keep=row.number != 3)
    assert list(await store.snapshots(context)) == [rows[0], rows[1], rows[3]]


@over_store
async def test_contexts_are_due_when_windows_have_ended_until_they_are_published(store: Store) -> None:
    first, second = await opened(store), await opened(store, "second")
    now = await now_of(store)
    await store.write(Group(pages=[page(first, now), page(first, now + 5), page(second, now + 3)]))
    shards, end = range(SHARDS), now + 600_000
    assert list(await store.due(shards, 0, end - 1)) == []
    assert list(await store.due(shards, 0, end)) == [first]
    assert list(await store.due(shards, now, end)) == []
    assert list(await store.due([second % SHARDS], 0, end + 3)) == [second]
    lease = await lease_of(store, first)
    await store.close_through(lease, first, now)
    assert list(await store.due(shards, 0, end)) == [first], "closed but not published: somebody stopped in between"
    await store.publish(lease, publication(first, 1, now), [])
    assert list(await store.due(shards, 0, end + 4)) == [second]
    assert list(await store.due(shards, 0, end + 5)) == [first, second]
    await store.publish(lease, publication(first, 2, now + 5), [])
    assert list(await store.due(shards, 0, end + 99)) == [second]
    await store.write(Group(pages=[page(first, now + 7)]))
    assert list(await store.due(shards, 0, end + 99)) == [first, second]


@over_store
async def test_who_asks_since_a_time_of_the_store_misses_no_publication(store: Store) -> None:
    contexts = [await opened(store, f"c{number}") for number in range(20)]
    lease = {context: await lease_of(store, context) for context in contexts}
    known: dict[int, int] = {}
    finished = asyncio.Event()

    async def follow() -> None:
        since = 0
        while not finished.is_set():
            before = await now_of(store)
            known.update(await store.published(since))
            since = before
            await asyncio.sleep(0)
        known.update(await store.published(since))

    async def publish(context: int) -> None:
        for number in (1, 2, 3):
            await store.publish(lease[context], publication(context, number), [])

    follower = asyncio.create_task(follow())
    await asyncio.gather(*(publish(context) for context in contexts))
    finished.set()
    await follower
    assert known == dict.fromkeys(contexts, 3)


def test_waiting_ends_with_a_publication_or_an_operation_of_another_server(kind: Kind) -> None:
    async def within() -> None:
        async with connected(kind, 2) as (ours, theirs):
            context = await opened(theirs)
            lease = await lease_of(theirs, context)
            await ours.wait(0.001)
            for act in (
                lambda: theirs.publish(lease, publication(context), []),
                lambda: theirs.add_operation("t", 0, OperationKind.KILL, "{}"),
            ):
                waiting = asyncio.create_task(ours.wait(600))
                await asyncio.sleep(0)
                await act()
                await asyncio.wait_for(waiting, 60)

    asyncio.run(within())


# --- operations ---


def test_operations_of_several_servers_are_numbered_without_gaps_and_never_seen_out_of_order(kind: Kind) -> None:
    async def within() -> None:
        async with connected(kind, 3) as stores:
            seen: list[int] = []
            finished = asyncio.Event()

            async def read() -> None:
                while not finished.is_set():
                    seen.extend(row.number for row in await stores[0].operations(seen[-1] if seen else 0))
                    await asyncio.sleep(0)
                seen.extend(row.number for row in await stores[0].operations(seen[-1] if seen else 0))

            async def act(store: Store) -> None:
                for _ in range(10):
                    await store.add_operation("t", 0, OperationKind.KILL, "{}")

            reader = asyncio.create_task(read())
            await asyncio.gather(*(act(store) for store in stores for _ in range(2)))
            finished.set()
            await reader
            assert seen == list(range(1, 61))

    asyncio.run(within())


@over_store
async def test_operations_come_back_and_are_told_by_heartbeats(store: Store) -> None:
    assert (await store.heartbeat("a", 0, 1000)).operations == 0
    row = await store.add_operation("t", 0, OperationKind.KILL, '{"why": "ö"}')
    following = await store.add_operation("t", 4, OperationKind.ROLLBACK, '{"version": 3}')
    assert (row.number, row.kind, following.number, following.context) == (1, 1, 2, 4)
    assert list(await store.operations(0)) == [row, following]
    assert list(await store.operations(1)) == [following]
    assert (await store.heartbeat("a", 1, 1000)).operations == 2


# --- closing against feedback ---


def test_a_click_is_in_the_closing_that_comes_after_it_or_was_late(kind: Kind) -> None:
    """Three servers report while a fourth closes: there is no third case."""

    async def within() -> None:
        async with connected(kind, 4) as stores:
            for number in range(3):
                await race(await opened(stores[0], f"c{number}"), *stores)

    asyncio.run(within())


async def race(context: int, closer: Store, *servers: Store) -> None:
    now, lease = await now_of(closer), await lease_of(closer, context)
    rows = [page(context, now + place // 6) for place in range(360)]
    outcomes: dict[bytes, Outcome] = {}
    counted: dict[bytes, int] = {}

    async def tell(store: Store, mine: Sequence[PageRow]) -> None:
        for start in range(0, len(mine), 4):
            told = mine[start : start + 4]
            for row, outcome in zip(told, await said(store, *(report(row, 1) for row in told)), strict=True):
                outcomes[row.impression] = outcome

    async def close() -> None:
        through = now - 1
        for step in range(12):
            closed = await closer.close_through(lease, context, now + 5 * step + 4)
            for row in await closer.pages_between(context, through, closed):
                assert row.impression not in counted
                counted[row.impression] = row.clicks
            through = closed

    await asyncio.gather(close(), *(tell(store, rows[number::3]) for number, store in enumerate(servers)))
    assert {row.impression for row in rows} == set(outcomes)
    accepted = {impression for impression, outcome in outcomes.items() if outcome == ACCEPTED}
    assert accepted == {impression for impression, clicks in counted.items() if clicks}
    assert set(outcomes.values()) <= {ACCEPTED, LATE}


def test_groups_with_the_same_pages_in_other_order_all_get_through(kind: Kind) -> None:
    async def within() -> None:
        async with connected(kind, 3) as stores:
            contexts = [await opened(stores[0], f"c{number}") for number in range(3)]
            now = await now_of(stores[0])
            rows = [page(contexts[place % 3], now) for place in range(30)]

            async def tell(store: Store, place: int) -> None:
                order = rows[::-1] if place % 2 else rows[place:] + rows[:place]
                reports = [report(row, 1 << place, f"{row.impression.hex()}") for row in order]
                await store.write(Group(reports=reports, pages=order[::-1]))

            await asyncio.gather(*(tell(stores[place % 3], place) for place in range(12)))
            for row in rows:
                found = await stores[0].page(row.impression)
                assert found is not None
                assert found.clicks.bit_count() == 1, "one of the reports with an event_id counted"

    asyncio.run(within())


# --- retention ---


@over_store
async def test_old_pages_go_in_slices_and_a_kept_snapshot_stands_for_them(store: Store) -> None:
    context, other, now = await opened(store), await opened(store, "other"), await now_of(store)
    rows = [page(context, now + place) for place in range(5)]
    await store.write(Group(pages=[*rows, page(other, now)]))
    lease = await lease_of(store, context)
    for number, through in ((1, now), (2, now + 3)):
        await store.publish(lease, publication(context, number, through), [], keep=number == 1)
    assert await store.contexts_with_pages_before([context % SHARDS], now) == []
    assert await store.contexts_with_pages_before([context % SHARDS], now + 1) == [context]
    await store.keep_publication(lease, context)
    await store.keep_publication(lease, context)
    first, second = await store.snapshot_heads(context)
    assert (first.number, second.through, await store.pruned_through(context)) == (1, now + 3, 0)
    assert await store.prune(lease, context, second, now + 3, 0, 2) == 2
    assert await store.prune(lease, context, second, now + 3, 0, 2) == 1
    assert await store.prune(lease, context, second, now + 3, 0, 2) == 0
    assert [row async for some in store.all_pages(context) for row in some] == rows[3:]
    assert [row.number for row in await store.snapshots(context)] == [2]
    assert (await store.pruned_through(context), await store.pruned_through(other)) == (now + 3, 0)
    assert len([row async for some in store.all_pages(other) for row in some]) == 1


@over_store
async def test_nothing_goes_under_an_old_lease_or_when_an_operation_was_not_seen(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    await store.write(Group(pages=[page(context, now)]))
    lease = await lease_of(store, context)
    await store.publish(lease, publication(context, 1, now), [], keep=True)
    (snapshot,) = await store.snapshot_heads(context)
    rollback = await store.add_operation("t", context, OperationKind.ROLLBACK, "{}")
    assert await store.prune(lease, context, snapshot, now + 1, rollback.number - 1, 10) == 0
    assert await store.pruned_through(context) == 0
    with pytest.raises(StaleLeaseError):
        await store.prune(lease._replace(epoch=lease.epoch - 1), context, snapshot, now + 1, rollback.number, 10)
    with pytest.raises(StaleLeaseError):
        await store.keep_publication(lease._replace(epoch=lease.epoch - 1), context)
    assert await store.prune(lease, context, snapshot, now + 1, rollback.number, 10) == 1


@over_store
async def test_single_pages_go_with_their_event_ids_and_others_stay(store: Store) -> None:
    context, other, now = await opened(store), await opened(store, "other"), await now_of(store)
    rows, foreign = [page(context, now + place) for place in range(5)], page(other, now)
    await store.write(Group(pages=[*rows, foreign]))
    reports = [report(rows[1], 1, "one"), report(rows[1], 2, "two"), report(rows[2], 1, "three")]
    assert await said(store, *reports) == [ACCEPTED] * 3
    lease = await lease_of(store, context)
    for number, through in ((1, now), (2, now + 3)):
        await store.publish(lease, publication(context, number, through), [], keep=True)
    _, snapshot = await store.snapshot_heads(context)
    asked = [row.impression for row in (rows[1], rows[3], rows[4], foreign)]  # the last two are not in the snapshot
    assert await store.delete_pages(lease, context, snapshot, asked) == (2, 2)
    assert await store.delete_pages(lease, context, snapshot, asked) == (0, 0)
    assert await store.delete_pages(lease, context, snapshot, []) == (0, 0)
    left = [row.impression async for some in store.all_pages() for row in some]
    assert left == sorted(row.impression for row in (rows[0], rows[2], rows[4], foreign))
    assert [row.number for row in await store.snapshots(context)] == [2]
    assert (await store.pruned_through(context), await store.pruned_through(other)) == (now + 3, 0)
    assert await said(store, reports[0], reports[2]) == [ACCEPTED, DUPLICATE]
    with pytest.raises(StaleLeaseError):
        await store.delete_pages(lease._replace(epoch=lease.epoch - 1), context, snapshot, [rows[0].impression])
    assert await store.page(rows[0].impression) is not None


@over_store
async def test_old_event_ids_are_forgotten(store: Store) -> None:
    context, now = await opened(store), await now_of(store)
    row = page(context, now)
    await said(store, report(row, 1, "one"), report(row, 2, "two"), report(row, 4, "three"))
    assert await store.prune_events(now - 1000, 10) == 0
    later = now + 60_000
    assert [await store.prune_events(later, 2), await store.prune_events(later, 2)] == [2, 1]
    assert await said(store, report(row, 1, "one")) == [ACCEPTED]
