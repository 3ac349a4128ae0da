"""A bare uvicorn server that sends back what it gets: what any call over HTTP costs. ``ServiceProcess`` starts it."""

import socket
from typing import Any

import uvicorn


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    body = body or b"{}"  # asked whether it is ready
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, http="h11", log_level="error", access_log=False, lifespan="off")
        print(f"ready: http://127.0.0.1:{listening.getsockname()[1]} ", flush=True)
        uvicorn.Server(config).run([listening])
