"""The clients: one for ordinary (threaded) programs, and its twin for asyncio, whose event loop never waits."""

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from typing import Any

from saferank_client.answers import Ranked, Wish
from saferank_client.delivering import Delivery, Patience
from saferank_client.link import Link


class _Linked:
    """What both have."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        key: str | None = None,
        time_limit: float = 0.1,
        queue: int = 10_000,
        ssl_context: ssl.SSLContext | None = None,
        patience: Patience = Patience(),  # noqa: B008 (a NamedTuple cannot be changed)
    ) -> None:
        self._link = Link(url, key=key, time_limit=time_limit, queue=queue, trust=ssl_context, patience=patience)

    def feedback(self, page: Ranked | str | None, clicks: Iterable[str], *, event_id: str | None = None) -> str | None:
        """Report clicks on a page; returns at once, never raises, and delivers in the background, again if need be.

        Args:
            page: What ``rank`` returned, or the token of a page.
            clicks: Ids that were clicked.
            event_id: An id of your own, if the same report may be made twice; None: a new one.

        Returns:
            The event's id; None if there is nothing to deliver: no clicks, or a page that was production's own.

        """
        return self._link.feedback(page, clicks, event_id)

    @property
    def delivery(self) -> Delivery:
        """What became of the feedback so far."""
        return self._link.delivery


class Client(_Linked):
    """Asks a service which page to show, and reports clicks. Make one per process; threads may share it.

    Args:
        url: The address of a server, or several of servers on one store: they are tried in turn within the limit.
        key: The key that the service asks for, if it does.
        time_limit: Seconds for all of ``rank``: finding the address, connecting, waiting, reading.
        queue: How many reports may wait for delivery.
        ssl_context: Which certificates are trusted; None: those of the machine.
        patience: How long failures are waited out.

    Raises:
        ValueError: An address or a limit is wrong. Nothing raises later.

    """

    def rank(
        self,
        context: str,
        base_ranking: Iterable[str],
        candidates: Iterable[str] = (),
        *,
        k: int | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        mode: str | None = None,
        pinned: Iterable[str] = (),
    ) -> Ranked:
        """The page to show: the service's, or ``base_ranking[:k]`` and a reason if anything goes wrong or is late.

        Args:
            context: What has a ranking of its own: a query, a category, a feed.
            base_ranking: Ids of production's ranking, best first.
            candidates: Ids of further items, the most promising first.
            k: How many items the page shows; None: all of ``base_ranking``.
            session_id: The visitor's session; without it reloads count as visitors of their own.
            request_id: An id of the call: asked again, it has the same page.
            mode: ``shadow`` shows production's ranking and logs what would have been shown.
            pinned: Ids of the first ``k`` of ``base_ranking`` that keep their places and are compared with nothing.

        Returns:
            The page: ``items``, and ``fallback`` with ``why`` where it is production's own.

        """
        attempt = self._link.begin(Wish(context, base_ranking, candidates, k, session_id, request_id, mode, pinned))
        if attempt.answer is None:
            return self._link.finish(attempt, None)
        try:
            return self._link.finish(attempt, attempt.answer.result(attempt.seconds_left))
        except Exception as problem:
            attempt.answer.cancel()
            return self._link.finish(attempt, problem)

    def flush(self, time_limit: float = 5.0) -> bool:
        """Wait until all feedback is delivered.

        Args:
            time_limit: Seconds to wait.

        Returns:
            False when some still waits.

        """
        return self._link.flush(time_limit)

    def close(self, time_limit: float = 5.0) -> bool:
        """Flush and end; afterwards ``rank`` gives production's ranking.

        Args:
            time_limit: Seconds to wait.

        Returns:
            False when some feedback is left undelivered.

        """
        return self._link.close(time_limit)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()


class AsyncClient(_Linked):
    """The twin of ``Client``: ``rank``, ``flush`` and ``close`` are awaited; ``feedback`` returns at once as it is.

    It does not belong to an event loop: it may be made before one runs, and used from several.
    """

    async def rank(
        self,
        context: str,
        base_ranking: Iterable[str],
        candidates: Iterable[str] = (),
        *,
        k: int | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        mode: str | None = None,
        pinned: Iterable[str] = (),
    ) -> Ranked:
        """As ``Client.rank``, awaited."""
        attempt = self._link.begin(Wish(context, base_ranking, candidates, k, session_id, request_id, mode, pinned))
        if attempt.answer is None:
            return self._link.finish(attempt, None)
        try:
            async with asyncio.timeout(attempt.seconds_left):
                answer = await asyncio.wrap_future(attempt.answer)
            return self._link.finish(attempt, answer)
        except Exception as problem:
            return self._link.finish(attempt, problem)
        finally:
            attempt.answer.cancel()

    async def flush(self, time_limit: float = 5.0) -> bool:
        """As ``Client.flush``, awaited."""
        return await asyncio.to_thread(self._link.flush, time_limit)

    async def close(self, time_limit: float = 5.0) -> bool:
        """As ``Client.close``, awaited."""
        return await asyncio.to_thread(self._link.close, time_limit)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self.close()
