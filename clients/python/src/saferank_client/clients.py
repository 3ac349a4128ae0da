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
        """Report clicks on a page (or on the page of a token); returns at once and never raises.

        Delivered in the background, again and again if need be. Returns the event's id, or None if there is nothing to
        deliver: no clicks, or a page that was production's own.
        """
        return self._link.feedback(page, clicks, event_id)

    @property
    def delivery(self) -> Delivery:
        """What became of the feedback so far."""
        return self._link.delivery


class Client(_Linked):
    """Asks a service which page to show, and reports clicks. Make one per process; threads may share it.

    ``url`` is the address of a server, or several of servers on one store: they are tried in turn within the limit.
    ``time_limit`` is for all of ``rank``: finding the address, connecting, waiting, reading. ``queue`` is how many
    reports may wait for delivery. Only a wrong ``url`` or limit raises, when the client is made.
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
        """The page to show: the service's, or ``base_ranking[:k]`` and a reason if anything goes wrong or is late."""
        attempt = self._link.begin(Wish(context, base_ranking, candidates, k, session_id, request_id, mode, pinned))
        if attempt.answer is None:
            return self._link.finish(attempt, None)
        try:
            return self._link.finish(attempt, attempt.answer.result(attempt.seconds_left))
        except Exception as problem:
            attempt.answer.cancel()
            return self._link.finish(attempt, problem)

    def flush(self, time_limit: float = 5.0) -> bool:
        """Wait until all feedback is delivered; False when some still waits."""
        return self._link.flush(time_limit)

    def close(self, time_limit: float = 5.0) -> bool:
        """Flush and end; afterwards ``rank`` gives production's ranking."""
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
        """The page to show: the service's, or ``base_ranking[:k]`` and a reason if anything goes wrong or is late."""
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
        """Wait until all feedback is delivered; False when some still waits."""
        return await asyncio.to_thread(self._link.flush, time_limit)

    async def close(self, time_limit: float = 5.0) -> bool:
        """Flush and end; afterwards ``rank`` gives production's ranking."""
        return await asyncio.to_thread(self._link.close, time_limit)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self.close()
