"""The application in this process, called through httpx."""

from typing import Any

import httpx

from saferank.service.http.app import make_app
from saferank.service.http.gate import Gate
from saferank.service.http.hub import Hub
from saferank.service.keys import hashed
from saferank.service.settings import Settings, TenantKeys
from tests.service.http.fake_engine import FakeEngine

RANK = {"context": "home", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2}
SHOP = TenantKeys(rank=(hashed("shop-rank"),), feedback=(hashed("shop-feedback"),))
BANK = TenantKeys(rank=(hashed("bank-rank"),))


class Service:
    """An application and the fake engine behind it."""

    def __init__(self, **settings: Any) -> None:
        self.engine = FakeEngine()
        self.hub = Hub(Settings(**settings), self.engine)
        self.app: Gate = make_app(self.hub)

    def client(self, address: str = "127.0.0.1", host: str = "localhost") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(address, 1))
        return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")
