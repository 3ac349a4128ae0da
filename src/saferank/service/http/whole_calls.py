"""Hot calls that are recognised in the bytes of a connection, without a parser.

Only heads about which there can be no doubt are recognised: the one way in which HTTP/1.1 clients write them, and
nothing unusual among the headers. Everything else is left to the parser. Clients repeat their heads to the letter, so
the newest ones are remembered.
"""

import functools
import re
from typing import NamedTuple

LARGEST = 4096
"""Bytes of a head that is looked at here."""

_HEAD = re.compile(
    rb"POST (/v1/rank|/v1/feedback) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]*(?:[!-~\x80-\xff](?:[ \t]*[!-~\x80-\xff])*)?[ \t]*\r\n)+)\r\n"
)
_UNUSUAL = frozenset((b"expect", b"upgrade", b"transfer-encoding", b"origin"))


class WholeHead(NamedTuple):
    """The head of a hot call."""

    path: str
    headers: list[tuple[bytes, bytes]]  # names in lower case
    size: int  # bytes, up to where the body begins
    length: int  # bytes of the body


def head_in(data: bytes) -> WholeHead | None:
    r"""The head of a hot call with which the data begins; None: this is for the parser.

    >>> head = head_in(b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    >>> head.path, head.headers[0], head.size, head.length
    ('/v1/rank', (b'host', b'localhost'), 62, 2)
    """
    if not data.startswith(b"POST /v1/"):
        return None
    end = data.find(b"\r\n\r\n", 0, LARGEST)
    return None if end < 0 else _read(data[: end + 4])


@functools.lru_cache(maxsize=1024)
def _read(head: bytes) -> WholeHead | None:
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    headers = [(name.lower(), value.strip(b" \t")) for name, _, value in _pairs(found[2])]
    names = [name for name, _ in headers]
    if not _UNUSUAL.isdisjoint(names) or names.count(b"content-length") != 1:
        return None
    length = headers[names.index(b"content-length")][1]
    if not (length.isdigit() and len(length) <= 9) or any(_ends_connection(header) for header in headers):
        return None
    return WholeHead(found[1].decode("ascii"), headers, len(head), int(length))


def _pairs(lines: bytes) -> list[tuple[bytes, bytes, bytes]]:
    return [line.partition(b":") for line in lines.split(b"\r\n")[:-1]]


def _ends_connection(header: tuple[bytes, bytes]) -> bool:
    return header[0] == b"connection" and header[1].lower() != b"keep-alive"
