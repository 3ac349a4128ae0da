"""What all endpoints share: the settings, the engine, the keys, the limits and the metrics of one service."""

import time
from typing import TypeVar

from pydantic import BaseModel

from saferank.service.http.bodies import Receive, check_headers, parsed, read_body, too_large, understood
from saferank.service.http.limits import Pulse, TenantLimits
from saferank.service.http.metrics import Metrics
from saferank.service.interface import EngineInterface
from saferank.service.keys import Headers, Keys
from saferank.service.settings import Settings

_Call = TypeVar("_Call", bound=BaseModel)


class Hub:
    """One running service, as its endpoints see it."""

    def __init__(self, settings: Settings, engine: EngineInterface) -> None:
        self.settings = settings
        self.engine = _traced(engine) if settings.traces else engine
        self.keys = Keys(settings.tenants, settings.operator_keys)
        self.limits = TenantLimits(settings.tenant_rate, settings.tenant_burst, time.monotonic)
        self.pulse = Pulse(settings.max_lag_seconds)
        self.metrics = Metrics(engine.counters)
        self.stopping = False

    async def body(self, headers: Headers, receive: Receive, most: int | None = None) -> bytes:
        """The body of a request whose sender is known, of at most so many bytes."""
        limit = self._limit(most)
        check_headers(headers, limit)
        return await read_body(receive, limit, self.settings.body_seconds)

    def check_body(self, headers: Headers, body: bytes, most: int | None = None) -> None:
        """The same checks of a body that has arrived."""
        limit = self._limit(most)
        check_headers(headers, limit)
        if len(body) > limit:
            raise too_large(limit)

    async def call(self, kind: type[_Call], headers: Headers, receive: Receive) -> _Call:
        """The body of a request, understood."""
        return understood(kind, parsed(await self.body(headers, receive)))

    def _limit(self, most: int | None) -> int:
        return min(most or self.settings.max_body_bytes, self.settings.max_body_bytes)


def _traced(engine: EngineInterface) -> EngineInterface:
    from saferank.service.http.adapters.tracing import traced  # imports OpenTelemetry, which is optional

    return traced(engine)
