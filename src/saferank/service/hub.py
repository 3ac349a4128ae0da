"""What all endpoints share: the settings, the engine, the keys, the limits and the metrics of one service."""

import time
from typing import TypeVar

from pydantic import BaseModel

from saferank.service.bodies import Receive, check_headers, parsed, read_body, understood
from saferank.service.interface import EngineInterface
from saferank.service.keys import Headers, Keys
from saferank.service.limits import Pulse, TenantLimits
from saferank.service.metrics import Metrics
from saferank.service.settings import Settings

_Call = TypeVar("_Call", bound=BaseModel)


class Hub:
    """One running service, as its endpoints see it."""

    def __init__(self, settings: Settings, engine: EngineInterface) -> None:
        self.settings = settings
        self.engine = engine
        self.keys = Keys(settings.tenants)
        self.limits = TenantLimits(settings.tenant_rate, settings.tenant_burst, time.monotonic)
        self.pulse = Pulse(settings.max_lag_seconds)
        self.metrics = Metrics(engine.counters)
        self.stopping = False

    async def body(self, headers: Headers, receive: Receive) -> bytes:
        """The body of a request whose sender is known."""
        check_headers(headers, self.settings.max_body_bytes)
        return await read_body(receive, self.settings.max_body_bytes, self.settings.body_seconds)

    async def call(self, kind: type[_Call], headers: Headers, receive: Receive) -> _Call:
        """The body of a request, understood."""
        return understood(kind, parsed(await self.body(headers, receive)))
