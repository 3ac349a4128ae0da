"""What others publish is followed, and a publication that cannot be read holds up no other."""

import sqlite3
from contextlib import closing
from pathlib import Path

from saferank.store.embedded.file import FILE_NAME
from tests.service.engine_harness import House, T, run


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
            connection.execute("UPDATE publication SET through = through + 1 WHERE context = 1")
            connection.commit()
        await h.server.follower.follow()
        assert [context.fold.pages for context in contexts] == [0, 1]
        await h.stop()

    run(test())
