"""Pages that are bound to an event id, and pages that do not count before they are shown."""

import json
from pathlib import Path

from saferank.service.clock import moment
from saferank.service.knowledge.catalogues import digest_of
from saferank.service.wire.exports import Converter
from saferank.service.wire.problems import Problem
from tests.service.engine_harness import BASE, CANDIDATES, House, T, house, run


def test_a_report_without_clicks_binds_its_page_to_the_event_id(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as h:
            first, second = await h.rank("c"), await h.rank("c")
            await h.click(first, event_id="e")
            refused = await h.click(second, event_id="e")
            assert isinstance(refused, Problem) and refused.status == 409
            await h.click(second, second.ranking[0], event_id="with clicks")
            await h.restart()
            found = await h.engine.event_page(T, "e")
            assert found is not None
            assert (found.impression_id, found.context) == (first.impression_id, "c")
            assert (list(found.ranking), found.catalogue) == (first.ranking, digest_of((BASE, CANDIDATES)))
            assert len(found.first) == len(found.ranking) and 0 < sum(found.first) <= 1
            for tenant, name in ((T, "other"), ("other", "e"), (T, "with clicks")):
                assert await h.engine.event_page(tenant, name) is None

    run(check())


async def _pages(h: House) -> tuple[int, int, int]:
    view = await h.engine.context(T, "c")
    return view.pages, view.arms["explore"].pages, view.arms["explore"].clicks


def test_a_deferred_page_counts_when_it_is_activated_and_not_at_all_otherwise(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as h:
            waiting = await h.rank("c", session_id="s", deferred=True)
            shown = await h.rank("c", session_id="s", deferred=True)
            await h.click(waiting, waiting.ranking[0])
            await h.click(shown, shown.ranking[1])
            await h.click(shown, activated=True)
            plain = await h.rank("c", session_id="t")
            await h.click(plain, plain.ranking[0], activated=True)  # means nothing for a page that counts anyway
            await h.close()
            assert await _pages(h) == (2, 2, 2)  # the first page of the session that was shown is its first
            stories = [await h.engine.impression(T, page.impression_id) for page in (waiting, shown, plain)]
            assert [story.counted for story in stories] == [False, True, True]
            lines = [json.loads(line) async for line in h.engine.export(T, None, None)]
            pages = [line for line in lines if line["kind"] == "page"]
            assert [line.get("activated") for line in pages] == [False, True, None]
            converter = Converter("sessions", moment(h.now + 10**9))
            assert sum(1 for line in lines for _ in converter.take(line)) == 2
            assert (await h.stop_and_replay()).pages == 3
            await h.start()

    run(check())


def test_a_start_remembers_only_visitors_whose_pages_were_shown(tmp_path: Path) -> None:
    async def check() -> None:
        async with house(tmp_path) as h:
            await h.rank("c", session_id="waits", deferred=True)
            await h.rank("c", session_id="shown")
            await h.engine.flush()
            fold, rows = h.fold(), [row async for row in h.store.all_pages()]
            fold.recall(rows)
            assert (len(rows), len(fold.visitors)) == (2, 1)

    run(check())
