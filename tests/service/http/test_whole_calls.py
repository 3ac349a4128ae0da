"""Heads that are recognised without a parser: only those about which there can be no doubt."""

import pytest

from saferank.service.http.whole_calls import LARGEST, head_in

USUAL = b"Host: localhost\r\nContent-Type: application/json\r\n"


def head(lines: bytes, request: bytes = b"POST /v1/rank HTTP/1.1") -> bytes:
    return request + b"\r\n" + lines + b"\r\n"


def test_the_usual_head_is_read() -> None:
    data = head(USUAL + b"X-API-Key:  key \r\nCONTENT-LENGTH:7\r\nAccept:\r\nConnection: Keep-Alive\r\n")
    found = head_in(data + b"a body")
    assert found is not None
    assert (found.path, found.size, found.length) == ("/v1/rank", len(data), 7)
    assert found.headers[2:] == [
        (b"x-api-key", b"key"),
        (b"content-length", b"7"),
        (b"accept", b""),
        (b"connection", b"Keep-Alive"),
    ]


@pytest.mark.parametrize(
    "data",
    [
        head(USUAL),
        head(USUAL + b"Content-Length: 1\r\nContent-Length: 1\r\n"),
        head(USUAL + b"Content-Length: 1\r\nContent-Length: 2\r\n"),
        head(USUAL + b"Content-Length: 1, 1\r\n"),
        head(USUAL + b"Content-Length: +1\r\n"),
        head(USUAL + b"Content-Length: 0x1\r\n"),
        head(USUAL + b"Content-Length: \xb2\r\n"),
        head(USUAL + b"Content-Length: 9999999999\r\n"),
        head(USUAL + b"Content-Length : 1\r\n"),
        head(USUAL + b" Content-Length: 1\r\n"),
        head(USUAL + b"Content-Length: 1\r\n folded: 2\r\n"),
        head(USUAL + b"Content-Length: 1\nTransfer-Encoding: chunked\r\n"),
        head(USUAL + b"Content-Length: 1\rTransfer-Encoding: chunked\r\n"),
        head(USUAL + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        head(USUAL + b"Content-Length: 1\r\nTRANSFER-ENCODING: identity\r\n"),
        head(USUAL + b"Content-Length: 1\r\nExpect: 100-continue\r\n"),
        head(USUAL + b"Content-Length: 1\r\nUpgrade: h2c\r\n"),
        head(USUAL + b"Content-Length: 1\r\nOrigin: https://shop.example\r\n"),
        head(USUAL + b"Content-Length: 1\r\nConnection: close\r\n"),
        head(USUAL + b"Content-Length: 1\r\nX-Name: a\x00b\r\n"),
        head(USUAL + b"Content-Length: 1\r\nX Name: a\r\n"),
        head(USUAL + b"Content-Length: 1\r\n", b"POST /v1/rank HTTP/1.0"),
        head(USUAL + b"Content-Length: 1\r\n", b"POST  /v1/rank HTTP/1.1"),
        head(USUAL + b"Content-Length: 1\r\n", b"POST /v1/rank?a=b HTTP/1.1"),
        head(USUAL + b"Content-Length: 1\r\n", b"POST /v1/contexts/a/kill HTTP/1.1"),
        head(USUAL + b"Content-Length: 1\r\n", b"GET /v1/rank HTTP/1.1"),
        head(USUAL + b"Content-Length: 1\r\n")[:-2],
        head(b"X-Long: " + b"a" * LARGEST + b"\r\nContent-Length: 1\r\n"),
    ],
)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert head_in(data + b"a") is None
