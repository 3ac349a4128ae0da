"""The Python client of the service: ``rank`` that never raises and never takes long, ``feedback`` that is not lost.

    from saferank_client import Client

    client = Client("http://127.0.0.1:8080")
    page = client.rank("shop", ["a", "b", "c"], candidates=["x"], k=2, session_id="s1")
    show(page.items)                       # production's own page if anything at all went wrong
    client.feedback(page, clicks=["b"])    # returns at once; delivered in the background

``AsyncClient`` is its twin for asyncio. Importing this needs httpx and nothing numerical.
"""

from saferank_client.answers import Ranked
from saferank_client.clients import AsyncClient, Client
from saferank_client.delivering import Delivery

__all__ = ["AsyncClient", "Client", "Delivery", "Ranked"]
