"""Everything at a glance, and the list of contexts, from a real server."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from saferank._version import __version__
from saferank.service.protocol.all_contexts import LOOK_SECONDS
from saferank.service.wire.views import OverviewView
from saferank.store.contract import ALL_TENANTS, AlarmRow, OperationKind, StoreUnavailableError
from tests.service.house import BASE, CANDIDATES, House, T, house, run

DAY = 86400


async def visits(h: House, context: str, pages: int, *wanted: str) -> None:
    """Pages whose visitors click the wanted items where they are shown; all of them closed."""
    for _ in range(pages):
        page = await h.rank(context)
        await h.accept(page, *(item for item in page.ranking if item in wanted))
    await h.close()


async def looked(h: House) -> OverviewView:
    """The overview after what others saw is no longer good enough."""
    await h.later(LOOK_SECONDS)
    return await h.server.overview(T)


def test_nothing_yet(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            view = await h.server.overview(T)
            assert (view.pages, view.served_share, view.funnel.contexts, view.changes) == (0, None, 0, [])
            assert view.sentence.startswith("No page has been closed yet")
            assert "holdout_share" in (view.effect.why_not or "")

    run(test())


def test_the_numbers_of_all_contexts_of_a_tenant(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, holdout_share=0.4) as h:
            await visits(h, "busy", 60, "a")
            await visits(h, "quiet", 3)
            await h.rank("only open")
            await h.rank("of others", tenant="other")
            view, listed = await looked(h), {c.name: c for c in (await h.server.list_contexts(T)).contexts}
            assert view.pages == 63 == view.feedback.closed_pages
            assert view.served_share == pytest.approx(1 - view.effect.holdout.pages / 63)
            assert 0 < view.effect.holdout.pages == sum(c.holdout.pages for c in listed.values())
            assert view.effect == await h.server.effect(T, None) and view.effect.clicks is not None
            (part,) = view.bins
            assert part.served == view.effect.served and part.holdout == view.effect.holdout
            assert view.effect.clicks_relative is not None
            assert part.lift == pytest.approx(view.effect.clicks_relative.estimate)
            assert view.exploring.learning is not None and 0 < view.exploring.learning < 1
            assert view.exploring.proven == 0, "nothing was certified"
            assert view.safety.checked == view.effect.served.pages and view.safety.over_limit == 0
            assert view.safety.worst_page is not None and 0 < view.safety.worst_page <= 1
            assert [(server.here, server.obeys) for server in view.servers] == [(True, True)]
            assert view.effect.promised == pytest.approx(0.4 * 63)
            assert list(listed) == ["busy", "only open", "quiet"]
            assert (listed["busy"].pages, listed["only open"].pages, listed["only open"].leader) == (60, 0, BASE[:3])
            funnel = view.funnel
            assert (funnel.contexts, funnel.with_evidence, funnel.changed_by_clicks, funnel.stopped) == (3, 1, 0, 0)
            assert view.feedback.accepted == h.server.counts["feedback_accepted_total"] > 0
            assert (await h.server.overview("other")).funnel.contexts == 1

    run(test())


def test_what_exploring_costs_is_that_of_the_last_days(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 40, "a")
            first = (await looked(h)).exploring.learning
            assert first is not None and first > 0
            await h.later(4 * DAY)
            await h.server.heartbeat.attempt()
            await visits(h, "d", 40)
            both, total = (await looked(h)).exploring.learning, [0, 0, 0]
            for name in ("c", "d"):  # the lease ran out meanwhile, and with it what was held under it
                for day in (await h.server.known_context(T, name)).fold.compared.days.values():
                    total = [one + other for one, other in zip(total, day.chosen, strict=True)]
            assert sum(total) == 80 and both == total[2] / 80
            await h.later(4 * DAY)
            (only,) = h.fold("d").compared.days.values()
            assert (await looked(h)).exploring.learning == only.chosen[2] / 40
            await h.later(7 * DAY)
            view = await looked(h)
            assert view.exploring.learning is None and "to learn" not in view.sentence

    run(test())


def test_changes_by_clicks_are_told_apart_from_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, rule="anytime:0.4", certificate_days=1) as h:
            await visits(h, "first", 60, "c")
            await visits(h, "second", 60, "c")
            await h.later(3 * DAY)
            await h.server.closer.close_due(everything=True)
            for name in ("first", "second"):  # in use again; what was held under the lease that ran out is let go
                await h.server.known_context(T, name)
            await h.server.closer.close_due(everything=True)
            view = await looked(h)
            causes = {change.cause for change in (await h.server.changes(T, "first")).changes}
            assert {"page", "expired"} <= causes
            assert {entry.context for entry in view.changes} == {"first", "second"}
            assert all(entry.change.cause == "page" and entry.change.evidence for entry in view.changes)
            times = [entry.change.at for entry in view.changes]
            assert times == sorted(times, reverse=True)

    run(test())


def test_a_leader_that_clicks_moved_is_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path, rule="anytime:0.4") as h:
            await visits(h, "c", 60, "c")
            view, (summary,) = await looked(h), (await h.server.list_contexts(T)).contexts
            assert summary.leader != BASE[:3] and summary.moved == sum(
                item != old for item, old in zip(summary.leader, BASE, strict=False)
            )
            assert view.funnel.changed_by_clicks == 1

    run(test())


def test_switches_are_markers_and_stops(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 3)
            await h.server.kill(T, "c", True, "a fault")
            await h.server.rollback(T, "c", 1, "a mistake")
            view, (summary,) = await looked(h), (await h.server.list_contexts(T)).contexts
            marks = [(mark.kind, mark.context, mark.text) for mark in view.markers]
            assert marks == [("kill", "c", "a fault"), ("rollback", "c", "back to version 1: a mistake")]
            assert (view.funnel.stopped, summary.killed, summary.why) == (1, True, "a fault")
            await h.server.kill(T, None, True, "a fire")
            view = await looked(h)
            assert (view.markers[-1].kind, view.markers[-1].context) == ("kill", None)
            assert view.killed_everywhere.on and view.sentence.startswith("Switched off everywhere (a fire)")
            assert (await h.server.overview("other")).markers == []

    run(test())


def test_two_dashboards_that_ask_at_once_have_every_marker_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 1)
            release = '{"saferank": "9.1", "policy": "kl-ucb-br", "rule": "paper:1e-5"}'
            await h.store.add_operation(ALL_TENANTS, 0, OperationKind.RELEASE, release)
            await h.server.kill(T, None, True, "a fault")
            await asyncio.gather(h.server.overview(T), h.server.overview("other"))
            await h.server.kill(T, None, False, "over")
            assert [mark.kind for mark in (await h.server.overview(T)).markers] == ["release", "kill", "unkill"]

    run(test())


@pytest.mark.check  # compiles another policy
def test_another_release_or_policy_is_a_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 1)
            await h.restart()
            assert (await looked(h)).markers == [], "nothing has changed"
            h.settings = structs.replace(h.settings, policy="bubble-rank")
            await h.restart()
            monkeypatch.setattr("saferank.service.server.__version__", "9.1")
            await h.later(60)
            await h.restart()
            await h.restart()
            view, theirs = await looked(h), await h.server.overview("other")
            assert [(mark.kind, mark.context, mark.text) for mark in view.markers] == [
                ("release", None, "policy kl-ucb-br to bubble-rank"),
                ("release", None, f"saferank {__version__} to 9.1"),
            ]
            assert view.markers[0].at < view.markers[1].at and theirs.markers == view.markers
            assert not view.killed_everywhere.on, "it is no switch"

    run(test())


def test_alarms_are_of_the_tenant_and_newest_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 1)
            await h.rank("of others", tenant="other")
            numbers = {row.name: row.id for row in await h.store.contexts()}
            for at, name in ((h.now - 2 * DAY * 1000, "c"), (h.now, "of others"), (h.now, "c")):
                await h.store.add_alarm(AlarmRow(at, numbers[name], "illegal_page", f"at {at}"))
            view = await looked(h)
            assert [(alarm.context, alarm.kind) for alarm in view.alarms] == [("c", "illegal_page")] * 2
            assert view.alarms[0].at > view.alarms[1].at
            assert "1 alarm in the last 24 hours." in view.sentence

    run(test())


def test_refusals_are_counted_by_reason(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            page = await h.rank("c")
            await h.refuse(page, "nobody")
            await h.refuse(page, page.ranking[0], shown=CANDIDATES)
            await h.refuse("no token", "a")
            await h.accept(page, page.ranking[0], event_id="e")
            await h.refuse(page, page.ranking[1], event_id="e")
            health = (await looked(h)).feedback
            assert health.accepted == 1 and health.refused == {
                "item not shown": 1,
                "other page": 1,
                "bad token": 1,
                "other body": 1,
            }
            assert h.server.counters()["feedback_refused_total"] == 4
            await h.refuse("no token", "a", tenant="other")
            assert (await looked(h)).feedback == health, "others' reports are theirs"
            theirs = (await h.server.overview("other")).feedback
            assert (theirs.accepted, theirs.refused) == (0, {"bad token": 1})
            assert h.server.counters()["feedback_refused_total"] == 5

    run(test())


def test_a_context_without_a_decision_in_sight_is_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "never clicked", 40)
            assert (await looked(h)).funnel.undecided_for_long == 0, "not judged in its first day"
            await h.later(2 * DAY)
            assert (await looked(h)).funnel.undecided_for_long == 1

    run(test())


def test_contexts_that_were_put_away_and_those_of_other_servers_are_read_from_what_was_published(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            await visits(h, "c", 20, "a")
            before, listed = await looked(h), await h.server.list_contexts(T)
            await h.restart()
            assert len(h.server.contexts) == 0
            assert structs.replace(await h.server.overview(T), feedback=before.feedback, now=before.now) == before
            assert await h.server.list_contexts(T) == listed
            assert len(h.server.contexts) == 0, "a list must not load knowledge"

    run(test())


def test_a_look_asks_the_store_a_few_questions_whatever_the_number_of_contexts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:
            for number in range(250):
                await h.rank(f"c{number}")
            await h.close()
            h.server.all_contexts._known.clear()  # as on another server, which has not read what was published
            h.server.all_contexts._since = 0
            asked: list[str] = []

            def counting(name: str, plain: object) -> object:
                async def call(*arguments: object) -> object:
                    asked.append(name)
                    return await plain(*arguments)  # type: ignore[operator]

                return call

            names = ("contexts", "published", "publications", "publication", "versions", "operations", "newest_alarms",
                     "pages_between", "catalogue", "count_pages")  # fmt: skip
            for name in names:
                monkeypatch.setattr(h.store, name, counting(name, getattr(h.store, name)))
            assert (await looked(h)).pages == 250
            assert sorted(asked) == sorted(
                ["contexts", "published", "publications", "publications", "publications", "operations", "newest_alarms"]
            )
            asked.clear()
            await h.server.list_contexts(T)
            assert asked == [], "a second has not passed"
            await looked(h)
            assert sorted(asked) == ["contexts", "newest_alarms", "operations", "published"], "nothing is new"
            monkeypatch.undo()

    run(test())


def test_while_the_store_is_down_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with house(tmp_path) as h:

            async def down(*_: object) -> None:
                raise StoreUnavailableError("gone")

            monkeypatch.setattr(h.store, "contexts", down)
            h.now += 2000  # the last look is good for a second
            for question in (h.server.overview, h.server.list_contexts):
                with pytest.raises(StoreUnavailableError, match="gone"):  # HTTP tells it as "does not answer"
                    await question(T)
            monkeypatch.undo()

    run(test())
