"""Inspection: damage that no single row shows is looked for at the start and once a day, logged and made an alarm.

It runs beside the calls: counting the pages of a large store takes seconds. Damage of this kind stops nobody: what is
served was published, with a checksum. But the log no longer proves it, so an operator must be told.
"""

import logging
from contextlib import suppress

from saferank.service.clock import Clock
from saferank.service.json_logs import log
from saferank.service.protocol.heart import Heart
from saferank.store.contract import AlarmRow, Store, StoreUnavailableError

PAUSE_SECONDS = 86_400.0
RETRY_SECONDS = 60.0


class Inspection:
    """Looks for damage; ``alarms`` counts what was found."""

    def __init__(self, store: Store, clock: Clock, heart: Heart) -> None:
        self._store, self._clock, self._heart = store, clock, heart
        self.alarms = 0

    async def run(self) -> None:
        """Look now and once a day, until cancelled."""
        while True:
            pause = PAUSE_SECONDS
            try:
                await self.look()
            except StoreUnavailableError:  # the heartbeat says so
                pause = RETRY_SECONDS
            await self._clock.sleep(pause)

    async def look(self) -> None:
        """Look once; StoreUnavailableError when the store does not answer."""
        for fault in await self._store.faults():
            self.alarms += 1
            log(logging.ERROR, "alarm", kind="damage", number=fault.context, detail=fault.detail)
            with suppress(StoreUnavailableError):  # it is in the logs
                await self._store.add_alarm(AlarmRow(self._heart.now(), fault.context, "damage", fault.detail))
