"""Following: what other servers publish and what operators do is known here within a second, mostly at once."""

import logging

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.protocol.contexts import Context, Contexts
from saferank.service.protocol.heart import Heart
from saferank.store.contract import Store, StoreError, StoreUnavailableError

WAIT_SECONDS = 1.0


class Follower:
    """Keeps the contexts that are in use up to date."""

    def __init__(self, store: Store, clock: Clock, heart: Heart, contexts: Contexts) -> None:
        self._store, self._clock, self._heart, self._contexts = store, clock, heart, contexts
        self._since = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._store.wait(WAIT_SECONDS)
                await self.follow()
            except StoreUnavailableError:
                await self._clock.sleep(WAIT_SECONDS)

    async def follow(self) -> None:
        """Obey new operations, and read what was published of contexts that are in use and not held here."""
        await self._heart.hear()
        now = self._heart.now()
        for number, newest in (await self._store.published(self._since)).items():
            context = self._contexts.numbered(number)
            if context is not None and context.held_in < 0 and context.published < newest:
                try:
                    await self._read(context)
                except StoreError as problem:  # damage: the context stays as it is, others must not wait for it
                    log(logging.ERROR, "a publication cannot be read", context=context.row.name, detail=str(problem))
        self._since = now

    async def _read(self, context: Context) -> None:
        publication = await self._store.publication(context.number)
        if publication is None or publication.number <= context.published or context.held_in >= 0:
            return
        fold = await self._contexts.fold_of(context.row, publication)
        context.fold, context.published = fold, publication.number
        self._contexts.measure(context)
