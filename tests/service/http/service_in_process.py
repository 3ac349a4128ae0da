"""The application in this process, called through httpx."""

from typing import Any, cast

import httpx

from saferank.service.http.app import App
from saferank.service.keys import hashed
from saferank.service.server import Server
from saferank.service.settings import TenantKeys, settings_of
from tests.limits import set_limits
from tests.service.http.fake_server import FakeServer

RANK = {"context": "home", "base_ranking": ["a", "b", "c"], "candidates": ["x"], "k": 2}
SHOP = TenantKeys(**{role: (hashed(f"shop-{role}"),) for role in ("rank", "feedback", "read", "operate")})
BANK = TenantKeys(rank=(hashed("bank-rank"),))


class Service:
    """An application and the fake server behind it."""

    def __init__(self, **settings: Any) -> None:
        self.server = FakeServer(settings_of(set_limits(settings)))
        self.app = App(cast(Server, self.server))

    def client(self, address: str = "127.0.0.1", host: str = "localhost") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(address, 1))
        return httpx.AsyncClient(transport=transport, base_url=f"http://{host}")
