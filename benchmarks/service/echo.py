"""A bare ASGI application on the uvicorn of the service: what HTTP itself costs.

``POST /NUMBER`` reads the body and answers with NUMBER bytes of JSON.
"""

import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from service_process import ServiceProcess


class EchoProcess(ServiceProcess):
    """The echo in a process of its own, asked like the service."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)

    def _command(self) -> list[str]:
        return [sys.executable, __file__]


async def echo(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Read everything, answer with as many bytes as the path says."""
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    asked = scope["path"][1:]
    body = b'"' + b"x" * (int(asked) - 2 if asked.isdecimal() else 0) + b'"'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Serve on a free port until SIGTERM."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(echo, http="h11", loop="uvloop", lifespan="off", log_level="warning", access_log=False)
        print(f"ready: http://127.0.0.1:{bound.getsockname()[1]} ", flush=True)
        uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
