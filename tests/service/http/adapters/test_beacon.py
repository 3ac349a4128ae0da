"""The route of the beacon and the script, without a browser."""

import asyncio
import json
from typing import Any

from tests.service.http.service_in_process import SHOP, Service

ORIGIN = "http://localhost:5999"
KEY = "?key=shop-feedback"


def test_the_beacon_takes_a_token_in_a_text_body_and_a_key_in_the_query() -> None:
    async def check() -> None:
        service = Service(tenants={"shop": SHOP}, cors_origins=(ORIGIN,))
        async with service.client() as client:
            good = {"token": "token:a,b", "clicks": ["a"]}
            cases: list[tuple[dict[str, Any], str, dict[str, str], int]] = [
                (good, KEY, {"origin": ORIGIN}, 200),
                (good, KEY, {"origin": "http://localhost"}, 200),
                (good, KEY, {}, 200),
                (good, "", {"x-api-key": "shop-feedback"}, 200),
                (good, KEY, {"origin": "http://evil.example"}, 403),
                *((good, KEY, {"origin": odd}, 403) for odd in ("null", "http://[", "http://[::1", "]", "://", "a b")),
                (good, "?key=wrong", {}, 401),
                (good, "", {}, 401),
                ({**good, "key": "shop-feedback"}, "", {}, 401),
                ({**good, "clicks": ["z"]}, KEY, {}, 422),
                ({**good, "impression_id": "page"}, KEY, {}, 422),
            ]
            for body, query, headers, status in cases:
                answer = await client.post(
                    f"/v1/beacon{query}", content=json.dumps(body), headers={"content-type": "text/plain", **headers}
                )
                assert answer.status_code == status, (body, headers, answer.text)
            assert (await client.post(f"/v1/beacon{KEY}", content=b"x" * 70_000)).status_code == 413
            odd = await client.post(f"/v1/beacon{KEY}", json=good, headers=[(b"origin", b"http://\xff\xfe")])
            assert odd.status_code == 403
            unread = await client.post("/v1/beacon?key=wrong", content=b"{")
            assert unread.status_code == 401, "a body is not looked at before the key"
            script = await client.get("/saferank.js")
            assert script.headers["content-type"].startswith("text/javascript")
            assert b"data-saferank-token" in script.content

    asyncio.run(check())
