"""What a file looks like from its first lines, to say so when it is not what was asked for."""

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from saferank.files import on_one_line
from saferank.logs.formats.byte_chunks import open_bytes, unreadable
from saferank.logs.records import LogError

EXPECTED = {
    "yandex-personalized": "tab-separated records like 'SessionID M Day USERID', "
    "'SessionID TimePassed Q SERPID QueryID Terms URL,Domain ...' and 'SessionID TimePassed C SERPID URLID'",
    "yandex-relevance": "tab-separated records like 'SessionID TimePassed Q QueryID RegionID URL ...' "
    "and 'SessionID TimePassed C URLID'",
    "sessions": 'JSON objects, one a line, like {"query": "q", "items": ["a", "b"], "clicked": ["b"]}, or Parquet',
    "ubi": 'JSON documents, one a line, like {"query_id": "1", "user_query": "q", "query_response_hit_ids": ["a"]} and '
    '{"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "a"}}}, with or without '
    "the action lines of a bulk request",
    "ga4": 'JSON events, one a line, like {"event_name": "view_item_list", ...} and {"event_name": "select_item", ...}',
    "segment": 'JSON events, one a line, like {"event": "Product List Viewed", ...} and {"event": "Product Clicked"}',
}

_PARQUET = b"PAR1"
_PACKED = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z"}
_HEAD = 1 << 16
_LINES = 50


def is_parquet(path: Path) -> bool:
    """True when the file begins like Parquet."""
    content, raw = open_bytes(path)
    with raw, content:
        try:
            return raw.read(len(_PARQUET)) == _PARQUET
        except OSError as problem:
            raise unreadable(path, problem) from problem


def check_format(path: Path, wanted: str) -> None:
    """Raise a ``LogError`` when the file is empty, packed, binary, or without doubt of another format."""
    head, source = _head(path), on_one_line(path)
    if head is None or (wanted == "sessions" and is_parquet(path)):
        return
    if not head.strip():
        raise LogError(f"{source}: is empty; expected {EXPECTED[wanted]}")
    if head.startswith(_PARQUET):
        raise LogError(f"{source}: looks like Parquet, which can be read as format sessions and not inside gzip")
    for magic, name in _PACKED.items():
        if head.startswith(magic):
            raise LogError(f"{source}: is packed with {name}; unpack it, or pack it with gzip")
    _refuse_other_text(head, wanted, source)


def _head(path: Path) -> bytes | None:
    """The beginning of the content; None if it is damaged, of which the reader can tell more."""
    content, raw = open_bytes(path)
    with raw, content:
        try:
            return content.read(_HEAD)
        except (EOFError, OSError, zlib.error):
            return None


def _refuse_other_text(head: bytes, wanted: str, source: str) -> None:
    lines = [line.split("\t") for line in head.decode("utf-8", "replace").split("\n")[:_LINES]]
    if any(map(_LOOKS_LIKE[wanted], lines)):
        return  # whatever else is wrong is counted line by line
    if b"\0" in head:
        line = head.partition(b"\0")[0].count(b"\n") + 1
        raise LogError(f"{source}: line {line}: found binary data, expected {EXPECTED[wanted]}")
    for name, looks_like in _LOOKS_LIKE.items():
        if any(map(looks_like, lines)):
            raise LogError(f"{source}: line 1: expected {EXPECTED[wanted]}; the file looks like format {name}")


def _is_personalized(fields: list[str]) -> bool:
    if fields[1:2] == ["M"]:
        return len(fields) == 4
    if fields[2:3] in (["Q"], ["T"]):
        return len(fields) > 6 and "," in fields[6]
    return fields[2:3] == ["C"] and len(fields) == 5


def _is_relevance(fields: list[str]) -> bool:
    if fields[2:3] == ["Q"]:
        return len(fields) > 5 and not any("," in item for item in fields)
    return fields[2:3] == ["C"] and len(fields) == 4


def _has(*words: str, enough: Callable[[Iterable[bool]], bool] = any) -> Callable[[list[str]], bool]:
    """True for a JSON object in which one of the words stands, or where that is ``enough``, all of them."""

    def looks_like(fields: list[str]) -> bool:
        line = "\t".join(fields).strip()
        return line.startswith("{") and enough(word in line for word in words)

    return looks_like


_LOOKS_LIKE: dict[str, Callable[[list[str]], bool]] = {
    "yandex-personalized": _is_personalized,
    "yandex-relevance": _is_relevance,
    "sessions": _has('"items"', '"query"', enough=all),
    "ubi": _has('"user_query"', '"action_name"'),
    "ga4": _has('"view_item_list"', '"select_item"', '"event_name"'),
    "segment": _has('"Product List Viewed"', '"Product Clicked"', '"anonymousId"'),
}
