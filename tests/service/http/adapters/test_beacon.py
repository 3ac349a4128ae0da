"""The route of the beacon and the script, without a browser."""

import asyncio
import json
from typing import Any

from tests.service.http.service_in_process import SHOP, Service

ORIGIN = "http://localhost:5999"


def test_the_beacon_takes_key_and_token_in_a_text_body() -> None:
    async def check() -> None:
        service = Service(tenants={"shop": SHOP}, cors_origins=(ORIGIN,))
        async with service.client() as client:
            good = {"key": "shop-feedback", "token": "token:a,b", "clicks": ["a"]}
            cases: list[tuple[dict[str, Any], dict[str, str], int]] = [
                (good, {"origin": ORIGIN}, 200),
                (good, {"origin": "http://localhost"}, 200),
                (good, {}, 200),
                (good, {"origin": "http://evil.example"}, 403),
                ({**good, "key": "wrong"}, {}, 401),
                ({"token": "token:a", "clicks": []}, {}, 401),
                ({**good, "clicks": ["z"]}, {}, 422),
                ({**good, "impression_id": "page"}, {}, 422),
            ]
            for body, headers, status in cases:
                answer = await client.post(
                    "/v1/beacon", content=json.dumps(body), headers={"content-type": "text/plain", **headers}
                )
                assert answer.status_code == status, (body, answer.text)
            assert (await client.post("/v1/beacon", content=b"x" * 70_000)).status_code == 413
            script = await client.get("/saferank.js")
            assert script.headers["content-type"].startswith("text/javascript")
            assert b"data-saferank-token" in script.content

    asyncio.run(check())
